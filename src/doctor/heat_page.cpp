// The maps as an HTML page: SVG without scripts, and nothing to load. A cell shows its pair when pointed at.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/heat_cells.h"

namespace shardmark::doctor {
namespace {

constexpr int kMostRows = 160;

std::string escaped(const std::string& text) {
  std::string safe;
  for (char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

// From dark red (nothing) over yellow (0.6) to green (the median and more). It also gets lighter towards the
// median, for readers who cannot tell red from green.
std::string colour(double share) {
  if (std::isnan(share)) return "#eee";
  const double hue = 130 * std::clamp((share - 0.3) / 0.7, 0.0, 1.0);
  const double light = 30 + 35 * std::clamp(share, 0.0, 1.0);
  return fmt::format("hsl({:.0f},65%,{:.0f}%)", hue, light);
}

std::string cell(const Map& map, const Cells& cells, int row, int column, int side) {
  const double speed = cells.speeds.at(row, column);
  if (std::isnan(speed)) return "";
  return fmt::format(
      "<rect x='{}' y='{}' width='{}' height='{}' fill='{}'><title>{} - {}: {}, {:.0f} %</title></rect>\n",
      column * side, row * side, side, side, colour(speed / cells.usual),
      escaped(cells.names[static_cast<size_t>(row)]), escaped(cells.names[static_cast<size_t>(column)]),
      value_text(map, speed), 100 * speed / cells.usual);
}

std::string figure(const Map& map) {
  const Cells cells = cells_of(map, kMostRows);
  if (std::isnan(cells.usual)) return "";
  const int rows = cells.speeds.size();
  const int side = std::clamp(640 / rows, 4, 32);
  std::string svg = fmt::format(
      "<h2>{}</h2><p>median {}{}</p>\n<svg width='{}' height='{}' role='img'>\n", escaped(map.title),
      value_text(map, cells.usual),
      cells.group == 1 ? "" : fmt::format("; a cell is the slowest pair of {0} x {0} members", cells.group),
      rows * side + 200, rows * side + 4);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < rows; ++column) svg += cell(map, cells, row, column, side);
    if (side >= 10)
      svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", rows * side + 6, row * side + side - 3,
                         escaped(cells.names[static_cast<size_t>(row)]));
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string to_html(const std::vector<Map>& maps, const std::vector<std::string>& verdicts,
                    const std::string& head) {
  std::string page =
      "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>shardmark doctor --pairs</title>\n"
      "<style>body{font:15px sans-serif;margin:2em;max-width:60em}text{font:10px monospace}</style>\n"
      "<h1>Bandwidth and latency of every pair</h1>\n";
  page += "<p>" + escaped(head) + "</p>\n<ul>\n";
  for (const std::string& verdict : verdicts) page += "<li>" + escaped(verdict) + "</li>\n";
  page += "</ul>\n<p>Colours: green is the median of all pairs or more, yellow 60 % of it, red less.</p>\n";
  for (const Map& map : maps) page += figure(map);
  return page + "</html>\n";
}

}  // namespace shardmark::doctor
