// Names beside the marks of a scatter plot, in place of a legend.
#pragma once

#include "analysis/render/axis.h"
#include "analysis/render/svg_canvas.h"

namespace shardmark {

// Where a name stands: its box, and the line that it is written on.
struct NamePlace {
  Frame box;
  double x, y;
  const char* anchor;
};

// For each mark a place inside the frame that hides as little as possible of the marks, their intervals and
// the names before it.
std::vector<NamePlace> name_places(const std::vector<Place>& marks, const std::vector<std::string>& names,
                                   const std::vector<Frame>& intervals, const Frame& frame);

void draw_mark_names(SvgCanvas& canvas, const Plot& plot, const Frame& frame, const Range& over,
                     const Range& value);

}  // namespace shardmark
