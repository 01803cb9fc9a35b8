// From studies to one step time for each point and launch.
#include "analysis/frame/launches.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/frame/merged.h"
#include "base/error.h"
#include "base/stats.h"
#include "schema/fields.h"
#include "schema/imported.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

// When the launch that made the record began: the study's start, or the last resumption before the record.
std::string launch_start(const Environment& environment, const Record& record) {
  if (is_imported(environment)) return record.started;  // "": the source does not say
  std::string start = environment.started;
  const Json& facts = *environment.facts;
  const auto resumed = facts.find("resumed");
  if (resumed == facts.end() || !resumed->is_array()) return start;
  for (const Json& launch : *resumed) {
    const auto at = launch.is_object() ? launch.find("started") : launch.end();
    if (at == launch.end() || !at->is_string()) continue;
    const auto text = at->get<std::string>();  // ISO 8601 in UTC: sorts as text
    if (text > start && text <= record.started) start = text;
  }
  return start;
}

// What mpirun sets by itself, anew for each launch.
bool is_of_one_launch(const std::string& variable) {
  return variable.starts_with("OMPI_MCA_orte_") || variable.starts_with("OMPI_MCA_ess") ||
         variable.starts_with("OMPI_MCA_initial_wdir");
}

void note_environment(const Environment& e, std::map<std::string, std::set<std::string>>& facts) {
  const auto note = [&](const std::string& name, const Json& value) {
    if (value.is_primitive()) facts[name].insert(value.is_string() ? value.get<std::string>() : value.dump());
  };
  note("machine", machine_text(e));
  note("revision", e.revision);
  note("transport", e.transport);
  note("ranks", e.world_ranks);
  note("nodes", fmt::format("{}", fmt::join(e.nodes, ", ")));
  for (const auto& [name, value] : (*e.versions).items()) note(name, value);
  for (const auto& [name, value] : (*e.variables).items())
    if (!is_of_one_launch(name)) note(name, value);
  for (const auto& [name, value] : (*e.facts).items())
    if (name != kResumeFact) note(name, value);  // the study's own name is in it
}

void require_one_machine(const std::vector<StudyData>& studies) {
  for (const StudyData& study : studies) {
    const Environment &first = studies.front().environment, &other = study.environment;
    if (machine_text(first) != machine_text(other))
      throw UsageError(
          fmt::format("{} and {} come from different machines ({}; {}): they cannot be launches of the same "
                      "side; compare one with the other",
                      studies.front().path, study.path, machine_text(first), machine_text(other)));
    if (first.transport != other.transport)
      throw UsageError(
          fmt::format("{} and {} used different transports ({}; {}): they cannot be launches of the same "
                      "side; compare one with the other",
                      studies.front().path, study.path, first.transport, other.transport));
  }
}

}  // namespace

std::string launch_name(const Environment& environment, const Record& record) {
  if (auto imported = imported_launch(environment, record)) return *imported;
  return fmt::format("{} {}", launch_start(environment, record), fmt::join(environment.nodes, " "));
}

std::string content_id(const Point& point) {
  Point content = point;
  content.repeat = 0;
  content.sampling = {};
  content.training.scaling.clear();
  return point_id(content);
}

Launches launches_of(const std::vector<StudyData>& studies, OneMachine one_machine) {
  ENSURE(!studies.empty(), "launches of no study");
  if (one_machine == OneMachine::needed) require_one_machine(studies);
  Launches launches{machine_text(studies.front().environment), {}, {}, {}};
  std::map<std::string, std::map<std::string, std::map<std::string, double>>> times;  // point, launch, record
  for (const StudyData& study : studies) {
    note_environment(study.environment, launches.environment);
    for (const Record& record : study.records) {
      if (!is_known_workload(record.point) || record.point.workload == "train") continue;
      const std::string content = content_id(record.point);
      LaunchTimes& point = launches.points.try_emplace(content, LaunchTimes{}).first->second;
      if (point.name.empty()) point.name = brief_text(record.point);
      const double step_s = record.measures.step_s;
      if (record.outcome != Outcome::ok) {
        point.missing = fmt::format("{}: {}", to_text(record.outcome), record.reason);
      } else if (record.point.workload == "collective" && record.point.collective.beside != "alone") {
        point.missing =
            "not compared: each launch chooses how long a round beside a load is; see table together";
      } else if (!std::isfinite(step_s) || step_s <= 0) {
        point.missing = "ok, but without a step time";
      } else {
        const std::string launch = launch_name(study.environment, record);
        launches.started[launch] = launch_start(study.environment, record);
        times[content][launch][record.id] = step_s;
      }
    }
  }
  if (launches.started.size() > kMostLaunches)
    throw UsageError(fmt::format("{} launches on one side; at most {} are compared: give the latest",
                                 launches.started.size(), kMostLaunches));
  // A launch counts once for each point, whatever the number of its repeats, because repeats of one launch
  // are alike. A point that failed in one launch and has a time in another is not missing.
  for (const auto& [content, by_launch] : times) {
    LaunchTimes& point = launches.points[content];
    point.missing.clear();
    for (const auto& [launch, by_record] : by_launch) {
      std::vector<double> repeats;
      for (const auto& [id, step_s] : by_record) repeats.push_back(step_s);
      point.step_s.push_back(median(std::move(repeats)));
    }
  }
  return launches;
}

}  // namespace shardmark
