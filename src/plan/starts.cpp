// Groups points by the settings that their ranks must be started with; starts.h explains why.
#include "plan/starts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shardmark {

std::vector<StartOfPoints> starts_of(const std::vector<Point>& points) {
  const bool have_settings = std::any_of(points.begin(), points.end(),
                                         [](const Point& point) { return !point.environment.empty(); });
  const bool have_repeats =
      std::any_of(points.begin(), points.end(), [](const Point& point) { return point.repeat > 0; });
  std::vector<StartOfPoints> starts;
  std::map<std::pair<int64_t, std::string>, size_t> places;
  for (const Point& point : points) {
    const int64_t repetition = have_settings && have_repeats ? point.repeat + 1 : 0;
    const auto [place, is_new] = places.emplace(std::pair(repetition, point.environment), starts.size());
    if (is_new) starts.push_back({point.environment, repetition, {}});
    starts[place->second].points.push_back(point);
  }
  // In a shuffled plan the settings come in a different order in each repetition. All repetitions start them
  // in the order of the first, so that they take turns.
  const std::vector<std::string> order = settings_of(points);
  const auto place_of = [&](const StartOfPoints& start) {
    return std::pair(start.repetition, std::find(order.begin(), order.end(), start.environment));
  };
  std::stable_sort(starts.begin(), starts.end(),
                   [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  return starts;
}

std::vector<std::string> settings_of(const std::vector<Point>& points) {
  std::vector<std::string> settings;
  for (const Point& point : points)
    if (std::find(settings.begin(), settings.end(), point.environment) == settings.end())
      settings.push_back(point.environment);
  return settings;
}

std::vector<std::string> names_set(const std::vector<Point>& points) {
  std::set<std::string> names;
  for (const std::string& settings : settings_of(points))
    for (const auto& [name, value] : settings_from_text(settings)) names.insert(name);
  return {names.begin(), names.end()};
}

// A variable that is set here but is not wanted is a difference, too: the wanted combination leaves it
// unset.
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
