// Writing and reading of baselines; see Note [Baseline].
#include "analysis/compare/baseline.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr const char* kMark = "shardmark_baseline";

// Takes a file apart; every message says where in the file.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  std::map<std::string, Launches> machines(const std::string& text) const {
    const Json whole = Json::parse(text, nullptr, false);
    if (whole.is_discarded() || !whole.is_object() || !whole.contains(kMark))
      throw UsageError(path_ + " is not a baseline; write one with shardmark compare --write-baseline");
    if (!whole[kMark].is_number_integer()) fail(kMark, "a whole number");
    if (whole[kMark].get<int64_t>() > kVersion)
      throw UsageError(
          fmt::format("{} is a baseline of version {}, this program reads up to {}; use a newer shardmark",
                      path_, whole[kMark].dump(), kVersion));
    std::map<std::string, Launches> machines;
    for (const auto& [name, machine] : object(whole, "machines", "machines").items())
      machines[name] = launches(name, machine);
    return machines;
  }

 private:
  Launches launches(const std::string& name, const Json& machine) const {
    const std::string where = "machines." + name;
    Launches launches{name, {}, {}, {}};
    for (const auto& [launch, start] : object(machine, "started", where + ".started").items())
      launches.started[launch] = text(start, where + ".started");
    for (const auto& [what, values] : object(machine, "environment", where + ".environment").items())
      for (const Json& value : values) launches.environment[what].insert(text(value, where + ".environment"));
    for (const auto& [content, point] : object(machine, "points", where + ".points").items())
      launches.points[content] = times(point, where + ".points." + content);
    return launches;
  }

  LaunchTimes times(const Json& json, const std::string& where) const {
    if (!json.is_object()) fail(where, "an object");
    LaunchTimes point;
    point.name = text(json.value("name", Json("")), where + ".name");
    for (const Json& time : json.value("step_s", Json::array()))
      point.step_s.push_back(seconds(time, where + ".step_s"));
    if (json.contains("reference")) {
      const Json& reference = object(json, "reference", where + ".reference");
      const auto end = [&](const char* key) {
        const Json value = reference.value(key, Json());
        return value.is_null() ? std::nan("") : seconds(value, where + ".reference." + key);
      };
      point.reference = Reference{seconds(reference.value("value", Json()), where + ".reference.value"),
                                  end("lower"), end("upper")};
      if (point.step_s.empty()) point.step_s = {point.reference->value};
    }
    if (point.step_s.empty()) fail(where + ".step_s", "a step time in seconds for each launch");
    return point;
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
  Json json = {{"name", point.name}, {"step_s", point.step_s}};
  if (!point.reference) return json;
  const auto end = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  json["reference"] = {{"value", point.reference->value},
                       {"lower", end(point.reference->lower)},
                       {"upper", end(point.reference->upper)}};
  return json;
}

std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A line for each point, so that a change of a baseline reads well.
std::string to_text(const Launches& launches) {
  std::string text =
      fmt::format("  {}: {{\n   \"started\": {},\n   \"environment\": {},\n   \"points\": {{\n",
                  line(launches.machine), line(launches.started), line(launches.environment));
  std::string points;
  for (const auto& [content, point] : launches.points)
    if (!point.step_s.empty())
      points += fmt::format("{}    {}: {}", points.empty() ? "" : ",\n", line(content), line(to_json(point)));
  return text + points + "\n   }\n  }";
}

}  // namespace

std::string to_baseline(const Launches& launches, const std::string& existing, const std::string& path) {
  std::map<std::string, Launches> machines;
  if (!existing.empty()) machines = Reader(path).machines(existing);
  Launches written = launches;
  for (const auto& [content, before] : machines[launches.machine].points) {
    const auto found = written.points.find(content);
    if (before.reference && found != written.points.end()) found->second.reference = before.reference;
  }
  machines[launches.machine] = std::move(written);
  std::string text;
  for (const auto& [name, machine] : machines) text += (text.empty() ? "" : ",\n") + to_text(machine);
  return fmt::format("{{\"{}\": {},\n \"machines\": {{\n{}\n }}}}\n", kMark, kVersion, text);
}

Launches read_baseline(const std::string& text, const std::string& machine, const std::string& path) {
  std::map<std::string, Launches> machines = Reader(path).machines(text);
  const auto found = machines.find(machine);
  if (found != machines.end()) return std::move(found->second);
  std::string known;
  for (const auto& [name, launches] : machines) known += (known.empty() ? "" : "; ") + name;
  throw UsageError(
      fmt::format("{} has no times of this machine ({}); it has: {}; add them with --write-baseline", path,
                  machine, known.empty() ? "none" : known));
}

}  // namespace shardmark
