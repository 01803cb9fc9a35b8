// Groups members into cells, and draws the cells as letters.
#include "doctor/heat_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stats.h"
#include "doctor/heat_cells.h"

namespace shardmark::doctor {
namespace {

constexpr int kWidest = 40;
constexpr size_t kWidestName = 20;

char letter(double share) {
  if (std::isnan(share)) return ' ';
  if (share >= 0.95) return '.';
  return static_cast<char>('0' + std::clamp(static_cast<int>(share * 10), 0, 9));
}

// A line of column numbers "0123456789012...", with the tens in a line above.
std::string column_numbers(int columns, const std::string& indent) {
  std::string tens = indent, ones = indent;
  for (int i = 0; i < columns; ++i) {
    tens += i % 10 == 0 && i > 0 ? static_cast<char>('0' + i / 10) : ' ';
    ones += static_cast<char>('0' + i % 10);
  }
  return (columns > 10 ? tens.substr(0, tens.find_last_not_of(' ') + 1) + "\n" : "") + ones + "\n";
}

}  // namespace

Cells cells_of(const Map& map, int most) {
  const int size = map.speeds.size();
  Cells cells;
  cells.group = std::max(1, (size + most - 1) / most);
  const int rows = (size + cells.group - 1) / cells.group;
  cells.speeds = PairSpeeds(rows);
  for (int a = 0; a < size; ++a)
    for (int b = a + 1; b < size; ++b) {
      const int row = a / cells.group, column = b / cells.group;
      const double speed = map.speeds.at(a, b);
      if (!std::isnan(speed) && !(cells.speeds.at(row, column) <= speed))
        cells.speeds.set(row, column, speed);
    }
  for (int row = 0; row < rows; ++row) {
    const auto first = static_cast<size_t>(row) * static_cast<size_t>(cells.group);
    const auto last = std::min(first + static_cast<size_t>(cells.group), map.names.size()) - 1;
    cells.names.push_back(first == last ? map.names[first] : map.names[first] + " .. " + map.names[last]);
  }
  const auto all = map.speeds.measured();
  cells.usual = all.empty() ? NAN : median(all);
  return cells;
}

std::string value_text(const Map& map, double speed) {
  return fmt::format("{:.3g} {}", (map.inverse ? 1 / speed : speed) * map.scale, map.unit);
}

std::string to_text(const Map& map) {
  const Cells cells = cells_of(map, kWidest);
  const int rows = cells.speeds.size();
  if (std::isnan(cells.usual)) return map.title + ": no pair was measured\n";
  size_t width = 0;
  for (const std::string& name : cells.names) width = std::max(width, std::min(name.size(), kWidestName));
  std::string text = fmt::format("{}: median {}\n\n", map.title, value_text(map, cells.usual));
  text += column_numbers(rows, std::string(width + 6, ' '));
  for (int row = 0; row < rows; ++row) {
    text += fmt::format("{:>3} {:<{}}  ", row, cells.names[static_cast<size_t>(row)].substr(0, kWidestName),
                        width);
    for (int column = 0; column < rows; ++column)
      text += row == column && cells.group == 1 ? '\\' : letter(cells.speeds.at(row, column) / cells.usual);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  text +=
      "\n  . 95 % of the median or more; 9 = 90 %, 8 = 80 % ... 0 = less than 10 %; blank: not measured\n";
  if (cells.group > 1)
    text += fmt::format("  a cell is the slowest pair of {} x {} members\n", cells.group, cells.group);
  return text;
}

}  // namespace shardmark::doctor
