// A map reduced to a size that can be shown. Both forms of the map use it.
#pragma once

#include "doctor/heat_map.h"

namespace shardmark::doctor {

struct Cells {
  // Speeds of groups of members: of the slowest pair between two groups; on the diagonal, within a group.
  PairSpeeds speeds{0};
  std::vector<std::string> names;
  int group = 1;       // members per row
  double usual = NAN;  // the median of all pairs
};
Cells cells_of(const Map& map, int most);

}  // namespace shardmark::doctor
