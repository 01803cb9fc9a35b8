// Runs the points of a plan one after the other: makes a group of the ranks that take part, measures, and
// stores the record.
#pragma once

#include <functional>
#include <optional>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/in_step.h"
#include "comm/watch/watchdog.h"
#include "plan/plan.h"
#include "schema/study.h"
#include "sweep/progress.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

struct RunOptions {
  std::string transport;  // for points that do not name one
  at::Device device{at::kCPU};
  ProgressOn progress = ProgressOn::nothing;  // on rank 0
  bool check_collectives = false;             // comm/wrappers/checked.h; noted in every record
  std::string trace_directory = {};           // gets a trace of each training point; empty: none
  bool overwrites_traces = false;
  // Called on rank 0 just before a point is set up. Other ranks may wait for rank 0 meanwhile.
  std::function<void(const Point& point)> on_begin = {};
};

// The file of a planned point's trace. Its name contains the id of the point as it was planned: a point with
// `auto` and a point with the strategy that `auto` chooses are two points.
std::string trace_path(const std::string& directory, const Point& planned);

struct RunSummary {
  int64_t num_measured = 0, num_skipped = 0;  // points measured or skipped by this run
  int64_t num_before = 0;                     // points finished by an earlier run
  int64_t num_bad = 0;                        // wrong, failed or timed out, in this run or before
};

// The study cannot be written any more, which the user has to fix. Thrown on all ranks with the same message.
struct StudyLost : RefusedByAllRanks {
  using RefusedByAllRanks::RefusedByAllRanks;
};

// Collective over the world. `study` is set on rank 0 only. Points that the study already has are skipped. A
// point with batch size kLargest becomes the batches that the search tries. Throws StudyLost.
RunSummary run_points(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                      const Resources& resources, const RunOptions& options, Watchdog& watchdog);

}  // namespace shardmark
