// A map cut to a size that can be shown; shared by its two forms.
#pragma once

#include "doctor/heat_map.h"

namespace shardmark::doctor {

struct Cells {
  PairSpeeds speeds{0};  // of groups: the slowest pair between them (in them, on the diagonal)
  std::vector<std::string> names;
  int group = 1;       // members in a row
  double usual = NAN;  // the median of all pairs
};
Cells cells_of(const Map& map, int most);

}  // namespace shardmark::doctor
