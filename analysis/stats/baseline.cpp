// Writing and reading of baselines; see Note [Baseline].
#include "analysis/stats/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr const char* kMark = "shardmark_baseline";

std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Takes a file apart; every message says where in the file.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  std::map<std::string, Launches> machines(const std::string& text) const {
    const Json whole = parsed(text);
    if (!whole.is_object() || !whole.contains(kMark))
      throw UsageError(path_ + " is not a baseline; write one with shardmark compare --write-baseline");
    if (!whole[kMark].is_number_integer()) fail(kMark, "a whole number");
    if (whole[kMark].get<int64_t>() > kVersion)
      throw UsageError(
          fmt::format("{} is a baseline of version {}, this program reads up to {}; use a newer shardmark",
                      path_, whole[kMark].dump(), kVersion));
    require_known(whole, {kMark, "machines"}, "");
    std::map<std::string, Launches> machines;
    for (const auto& [name, machine] : object(whole, "machines", "machines").items())
      machines[name] = launches(name, machine);
    return machines;
  }

 private:
  Json parsed(const std::string& text) const {
    try {
      return Json::parse(text);
    } catch (const Json::parse_error& error) {
      const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
      throw UsageError(fmt::format("{}:{}: not valid JSON here, so this is not a baseline", path_,
                                   1 + std::count(text.begin(), end, '\n')));
    } catch (const Json::exception&) {  // a number that no double holds
      throw UsageError(path_ + ": a number is too large, so this is not a baseline");
    }
  }

  Launches launches(const std::string& name, const Json& machine) const {
    const std::string where = "machines." + name;
    require_known(machine, {"started", "environment", "points"}, where);
    Launches launches{name, {}, {}, {}};
    for (const auto& [launch, start] : object(machine, "started", where + ".started").items())
      launches.started[launch] = text(start, where + ".started");
    for (const auto& [what, values] : object(machine, "environment", where + ".environment").items())
      for (const Json& value : values) launches.environment[what].insert(text(value, where + ".environment"));
    for (const auto& [content, point] : object(machine, "points", where + ".points").items())
      launches.points[content] = times(point, fmt::format("{}.points.{}", where, content));
    return launches;
  }

  LaunchTimes times(const Json& json, const std::string& where) const {
    require_known(json, {"name", "step_s", "reference"}, where);
    LaunchTimes point;
    point.name = text(json.value("name", Json("")), where + ".name");
    for (const Json& time : json.value("step_s", Json::array()))
      point.step_s.push_back(seconds(time, where + ".step_s"));
    if (point.step_s.size() > kMostLaunches)
      fail(where + ".step_s",
           fmt::format("at most {} launches, got {}; keep the latest", kMostLaunches, point.step_s.size()));
    if (json.contains("reference")) point.reference = reference(json["reference"], where + ".reference");
    if (point.step_s.empty() && !point.reference)
      fail(where + ".step_s", "a step time in seconds for each launch");
    return point;
  }

  Reference reference(const Json& json, const std::string& where) const {
    require_known(json, {"value", "lower", "upper"}, where);
    const auto end = [&](const char* key) {
      const Json value = json.value(key, Json());
      return value.is_null() ? std::nan("") : seconds(value, where + "." + key);
    };
    const Reference reference{seconds(json.value("value", Json()), where + ".value"), end("lower"),
                              end("upper")};
    if (std::isnan(reference.lower) && std::isnan(reference.upper))
      fail(where, "'lower', 'upper' or both in seconds; without them it decides nothing");
    if (reference.lower > reference.value || reference.value > reference.upper)  // false for an open end
      fail(where, fmt::format("lower <= value <= upper, got {}", line(json)));
    return reference;
  }

  // An object, without keys that a slip of the hand made.
  void require_known(const Json& json, const std::vector<std::string>& keys, const std::string& where) const {
    if (!json.is_object()) fail(where, "an object");
    for (const auto& [key, value] : json.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        throw UsageError(fmt::format("{}: {}unknown key {}; {}", path_, where.empty() ? "" : where + ": ",
                                     quoted_line(key), accepted_words(key, keys)));
  }
  const Json& object(const Json& parent, const char* key, const std::string& where) const {
    if (!parent.is_object() || !parent.contains(key) || !parent[key].is_object()) fail(where, "an object");
    return parent[key];
  }
  std::string text(const Json& json, const std::string& where) const {
    if (!json.is_string()) fail(where, "a string");
    return json.get<std::string>();
  }
  double seconds(const Json& json, const std::string& where) const {
    if (!json.is_number() || !(json.get<double>() > 0)) fail(where, "seconds, more than 0");
    return json.get<double>();
  }
  [[noreturn]] void fail(const std::string& where, const std::string& expected) const {
    throw UsageError(fmt::format("{}: {}: expected {}", path_, where, expected));
  }

  std::string path_;
};

Json to_json(const LaunchTimes& point) {
  Json json = {{"name", point.name}};
  if (!point.step_s.empty()) json["step_s"] = point.step_s;
  if (!point.reference) return json;
  const auto end = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  json["reference"] = {{"value", point.reference->value},
                       {"lower", end(point.reference->lower)},
                       {"upper", end(point.reference->upper)}};
  return json;
}

// A line for each point, so that a change of a baseline reads well.
std::string to_text(const Launches& launches) {
  std::string text =
      fmt::format("  {}: {{\n   \"started\": {},\n   \"environment\": {},\n   \"points\": {{\n",
                  line(launches.machine), line(launches.started), line(launches.environment));
  std::string points;
  for (const auto& [content, point] : launches.points)
    if (!point.step_s.empty() || point.reference)
      points += fmt::format("{}    {}: {}", points.empty() ? "" : ",\n", line(content), line(to_json(point)));
  return text + points + "\n   }\n  }";
}

// Adds to `written` what it did not measure of the same machine, and every reference; the number of points
// that keep their times.
size_t keep(Launches&& before, Launches& written) {
  size_t num_kept = 0;
  for (auto& [content, was] : before.points) {
    LaunchTimes& is = written.points[content];
    is.reference = was.reference;
    if (!is.step_s.empty()) continue;
    num_kept += was.step_s.empty() ? 0 : 1;
    is.name = std::move(was.name);
    is.step_s = std::move(was.step_s);
  }
  // The file does not say which launch gave which time. So as long as a single former time stays, all
  // former launches and all that is known of their environments stay with it.
  if (num_kept == 0) return 0;
  written.started.merge(before.started);
  for (auto& [what, values] : before.environment) written.environment[what].merge(values);
  return num_kept;
}

}  // namespace

Baseline to_baseline(const Launches& launches, const std::string& existing, const std::string& path) {
  // An existing file is read in full before anything is written: a damaged one is an error, and is not
  // replaced.
  std::map<std::string, Launches> machines;
  if (!existing.empty()) machines = Reader(path).machines(existing);
  Launches written = launches;
  Baseline baseline;
  baseline.num_written =
      static_cast<size_t>(std::count_if(written.points.begin(), written.points.end(),
                                        [](const auto& point) { return !point.second.step_s.empty(); }));
  baseline.num_kept = keep(std::move(machines[launches.machine]), written);
  machines[launches.machine] = std::move(written);
  std::string text;
  for (const auto& [name, machine] : machines) text += (text.empty() ? "" : ",\n") + to_text(machine);
  baseline.text = fmt::format("{{\"{}\": {},\n \"machines\": {{\n{}\n }}}}\n", kMark, kVersion, text);
  return baseline;
}

Launches read_baseline(const std::string& text, const std::string& machine, const std::string& path) {
  std::map<std::string, Launches> machines = Reader(path).machines(text);
  const auto found = machines.find(machine);
  if (found != machines.end()) {
    for (auto& [content, point] : found->second.points)
      // A point that has only a reference shows the reference's value as the time before. The verdict
      // follows from the limits, not from this time.
      if (point.step_s.empty()) point.step_s = {point.reference->value};
    return std::move(found->second);
  }
  std::string known;
  for (const auto& [name, launches] : machines) known += (known.empty() ? "" : "; ") + name;
  throw UsageError(
      fmt::format("{} has no times of this machine ({}); it has: {}; add them with --write-baseline", path,
                  machine, known.empty() ? "none" : known));
}

}  // namespace shardmark
