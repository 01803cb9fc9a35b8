// Verdicts use medians, which a few disturbed pairs do not move. A map groups members into cells; it is drawn
// as letters, or as SVG in a page without scripts, where a cell shows its pair when pointed at.
#include "doctor/pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stats.h"

namespace shardmark::doctor {
namespace {

// With more members, the pairs of one do not move the median of all.
constexpr int kFew = 64;

std::vector<double> measured_without(const PairSpeeds& speeds, int member) {
  std::vector<double> values;
  for (int a = 0; a < speeds.size(); ++a)
    for (int b = a + 1; b < speeds.size(); ++b)
      if (a != member && b != member && !std::isnan(speeds.at(a, b))) values.push_back(speeds.at(a, b));
  return values;
}

// The usual speed of the pairs without a member, and how much these vary.
struct Background {
  explicit Background(std::vector<double> speeds) {
    if (speeds.empty()) return;
    usual = median(speeds);
    for (double& speed : speeds) speed = std::abs(speed - usual);
    deviation = 1.4826 * median(speeds) / usual;  // robust estimate of the standard deviation
  }
  double usual = NAN, deviation = 0;
};

// A member's speed relative to the others, and the limit below which it is named.
struct Standing {
  double share = 1, limit = 0;
};

// A member is named only if its median is below the limit, and if at least three quarters of its pairs are
// also slow one by one: below the middle between the usual speed and the limit. Without the second
// condition, a member would be named if little more than half of its links were slow. Such links are
// reported one by one instead. The standard error is that of a median.
Standing standing(const std::vector<double>& own, const Background& others, int size, double tolerance) {
  const double standard_error = 1.2533 * others.deviation / std::sqrt(static_cast<double>(own.size()));
  const Standing found{median(own) / others.usual, 1 - std::max(tolerance + 0.4 / size, 5 * standard_error)};
  const double slow_below = (1 + found.limit) / 2 * others.usual;
  const auto slow = std::count_if(own.begin(), own.end(), [&](double speed) { return speed < slow_below; });
  return 4 * slow >= 3 * static_cast<int64_t>(own.size()) ? found : Standing{};
}

}  // namespace

std::vector<double> PairSpeeds::measured() const { return measured_without(*this, -1); }

std::vector<double> PairSpeeds::measured_of(int member) const {
  std::vector<double> values;
  for (int other = 0; other < size_; ++other)
    if (other != member && !std::isnan(at(member, other))) values.push_back(at(member, other));
  return values;
}

std::vector<SlowMember> slow_members(const PairSpeeds& speeds, double tolerance) {
  std::vector<SlowMember> slow;
  const Background all(speeds.measured());
  for (int member = 0; member < speeds.size(); ++member) {
    const auto own = speeds.measured_of(member);
    const auto others = speeds.size() <= kFew ? Background(measured_without(speeds, member)) : all;
    if (own.empty() || std::isnan(others.usual)) continue;
    const Standing found = standing(own, others, speeds.size(), tolerance);
    if (found.share < found.limit) slow.push_back({member, found.share});
  }
  std::sort(slow.begin(), slow.end(),
            [](const SlowMember& a, const SlowMember& b) { return a.share < b.share; });
  return slow;
}

std::vector<SlowPair> slow_pairs(const PairSpeeds& speeds, const std::vector<SlowMember>& named,
                                 size_t most) {
  const auto all = speeds.measured();
  if (all.size() < 3) return {};
  const double usual = median(all);
  const auto is_named = [&](int member) {
    return std::any_of(named.begin(), named.end(),
                       [&](const SlowMember& one) { return one.member == member; });
  };
  std::vector<SlowPair> slow;
  for (int a = 0; a < speeds.size(); ++a)
    for (int b = a + 1; b < speeds.size(); ++b)
      if (speeds.at(a, b) < 0.6 * usual && !is_named(a) && !is_named(b))
        slow.push_back({a, b, speeds.at(a, b) / usual});
  std::sort(slow.begin(), slow.end(), [](const SlowPair& a, const SlowPair& b) { return a.share < b.share; });
  if (slow.size() > most) slow.resize(most);
  return slow;
}

namespace {

// A map reduced to a size that can be shown. Both forms of the map use it.
struct Cells {
  // Speeds of groups of members: of the slowest pair between two groups; on the diagonal, within a group.
  PairSpeeds speeds{0};
  std::vector<std::string> names;
  int group = 1;       // members per row
  double usual = NAN;  // the median of all pairs
};
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
