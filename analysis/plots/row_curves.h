// A quantity of the point of each row, in plots that lie on their side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/frame/groups.h"
#include "analysis/render/plot.h"

namespace shardmark {

// A kind of time or memory, which has a length in each row.
struct StackedPart {
  std::string_view quantity;
  const char* name;
  int style;  // filling
};

// Fills `curve`. larger: how many of the quantity's unit are one of the axis'.
Curve row_curve(Curve curve, std::string_view name, const PointList& points,
                const std::vector<std::string>& rows, double larger = 1);

}  // namespace shardmark
