// Runs the starts of a sweep one after the other, and turns a start that its library or launcher refused into
// failed points.
#include "launch/all_starts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "schema/journal.h"

namespace shardmark {
namespace {

struct RefusedStart {
  const StartOfPoints* start;
  std::string reason;
};

bool has_study(const std::string& path) { return file_exists(path) || has_journal(path); }

std::map<std::string, Known> known_in(const std::string& study) {
  std::map<std::string, Known> known;
  if (!has_study(study)) return known;
  try {
    for (const Record& record : read_study(study, Load::without_samples).records)
      known[record.id] = {record.outcome, record.attempts, record.ended_job};
  } catch (const UsageError&) {  // the ranks will report what is wrong
  }
  return known;
}

std::string name_of(const StartOfPoints& start, int64_t num_repetitions) {
  return (start.environment.empty() ? "nothing set" : start.environment) +
         (num_repetitions == 0 ? ""
                               : fmt::format(", repetition {} of {}", start.repetition, num_repetitions));
}

// If nothing of this start is left to measure: the exit status that its ranks would return.
std::optional<int> status_if_over(const StartOfPoints& start, const Sweep& sweep) {
  const auto known = known_in(sweep.study);
  bool any_bad = false;
  for (const Point& point : start.points) {
    const auto found = known.find(point_id(point));
    if (found == known.end() || !found->second.is_over()) return std::nullopt;
    any_bad = any_bad || found->second.has_failed();
  }
  return any_bad && sweep.rerun_failed ? std::nullopt : std::optional<int>(any_bad ? kWrong : kDone);
}

// Stores the points of refused starts as failed records, so that no point of the plan is missing and
// --rerun-failed measures them again.
void record(const std::vector<RefusedStart>& refused, const std::string& path) {
  Study study = Study::resume(path, read_study(path, Load::without_samples).environment);
  for (const auto& [start, reason] : refused)
    for (const Point& point : start->points) {
      Record failed;
      failed.point = point;
      failed.id = point_id(point);
      failed.outcome = Outcome::failed;
      failed.reason = "its ranks did not start: " + reason;
      study.append(failed);
    }
  study.publish();
}

}  // namespace

SweepEnd run_starts(const std::vector<StartOfPoints>& starts,
                    const std::function<Sweep(const StartOfPoints& start)>& sweep_of) {
  SweepEnd all;
  std::vector<RefusedStart> refused;
  std::string study;
  bool goes_on = false;
  for (size_t i = 0; i < starts.size(); ++i) {
    Sweep sweep = sweep_of(starts[i]);
    study = sweep.study;
    sweep.resume = sweep.resume || goes_on;
    const std::string name = name_of(starts[i], starts.back().repetition);
    if (const auto status = status_if_over(starts[i], sweep); starts.size() > 1 && sweep.resume && status) {
      all.status = std::max(all.status, *status);
      log_line(fmt::format("start {} of {}: {}: finished before", i + 1, starts.size(), name));
      continue;
    }
    if (starts.size() > 1) log_line(fmt::format("start {} of {}: {}", i + 1, starts.size(), name));
    const SweepEnd end = run_rounds(sweep);
    all.num_finished += end.num_finished;
    all.stopped_by = end.stopped_by;
    goes_on = goes_on || has_study(study);
    // The setting of this start may be what its library refused, so that the other starts are still tried.
    // Its points are recorded as failed at the end, when the study exists in any case.
    if (starts.size() > 1 && !end.refused.empty() && end.stopped_by == 0) {
      log_line(fmt::format("start {} of {} failed; its {} points count as failed", i + 1, starts.size(),
                           starts[i].points.size()));
      refused.push_back({&starts[i], end.refused});
      all.status = std::max(all.status, has_study(study) ? static_cast<int>(kWrong) : end.status);
      continue;
    }
    all.status = std::max(all.status, end.status);
    if (end.stopped_by != 0 || end.status > kWrong) return all;
  }
  if (!refused.empty() && has_study(study)) {
    record(refused, study);
    all.status = kWrong;
  }
  return all;
}

}  // namespace shardmark
