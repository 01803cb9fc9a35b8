// Shows the speeds of pairs as a map: as letters for a terminal, or as an HTML page that loads nothing.
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
  // Multiplies a speed (more is better) to give the unit; with `inverse` it multiplies 1 / speed.
  double scale = 1;
  bool inverse = false;  // shown as 1 / speed: a latency
};

// Has a row and a column for each member, at most 40. With more members neighbours are grouped, and a group
// shows its slowest pair. Cells are tenths of the median of all pairs; a legend below the map explains them.
std::string to_text(const Map& map);

// A complete page. Every pair is a coloured cell with its value (up to 160 members; grouped beyond that), and
// the verdicts stand above.
std::string to_html(const std::vector<Map>& maps, const std::vector<std::string>& verdicts,
                    const std::string& head);

// A speed as it is shown, with its unit.
std::string value_text(const Map& map, double speed);

}  // namespace shardmark::doctor
