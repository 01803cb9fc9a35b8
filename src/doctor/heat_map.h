// Speeds of pairs as a map: letters for a terminal, a page that needs nothing but a browser.
#pragma once

#include <string>
#include <vector>

#include "doctor/pairs.h"

namespace shardmark::doctor {

struct Map {
  std::string title;  // "Bandwidth between nodes, 4 MiB"
  std::string unit;   // "GB/s"
  PairSpeeds speeds;
  std::vector<std::string> names;  // of the members
  double scale = 1;                // a speed in the unit, where more is better; with `inverse` 1 / speed
  bool inverse = false;            // shown as 1 / speed: a latency
};

// A row and a column for each member, at most 40: neighbours are grouped beyond, the slowest pair of a group
// counts. Cells are tenths of the median of all pairs; see the legend below the map.
std::string to_text(const Map& map);

// A page of its own: every pair a coloured cell with its value (up to 160 members; grouped beyond), the
// verdicts above.
std::string to_html(const std::vector<Map>& maps, const std::vector<std::string>& verdicts,
                    const std::string& head);

// The shown value of a speed, with its unit.
std::string value_text(const Map& map, double speed);

}  // namespace shardmark::doctor
