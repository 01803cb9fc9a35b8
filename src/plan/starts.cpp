// See starts.h.
#include "plan/starts.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace shardmark {

std::vector<StartOfPoints> starts_of(const std::vector<Point>& points) {
  std::vector<StartOfPoints> starts;
  std::map<std::string, size_t> places;
  for (const Point& point : points) {
    const auto [place, is_new] = places.emplace(point.environment, starts.size());
    if (is_new) starts.push_back({point.environment, {}});
    starts[place->second].points.push_back(point);
  }
  return starts;
}

std::vector<std::string> names_set(const std::vector<Point>& points) {
  std::set<std::string> names;
  for (const StartOfPoints& start : starts_of(points))
    for (const auto& [name, value] : settings_from_text(start.environment)) names.insert(name);
  return {names.begin(), names.end()};
}

std::string difference(const Settings& wanted, const Settings& here) {
  for (const auto& [name, value] : wanted) {
    const auto found = here.find(name);
    if (found == here.end()) return fmt::format("{} is not set", name);
    if (found->second != value) return fmt::format("{} is {}", name, found->second);
  }
  for (const auto& [name, value] : here)
    if (!wanted.contains(name)) return fmt::format("{} is {}", name, value);
  return {};
}

}  // namespace shardmark
