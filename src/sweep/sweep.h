// Runs the points of a plan one after the other: takes their ranks out of the world, measures, stores.
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
  std::string transport;  // for points that name none
  at::Device device{at::kCPU};
  ProgressOn progress = ProgressOn::nothing;  // of rank 0
  bool check_collectives = false;             // comm/wrappers/checked.h; every record says so
  std::string trace_directory = {};           // of a trace of each training point; empty: none
  bool overwrites_traces = false;
  // Called on rank 0 just before a point is set up, while the others may wait for it.
  std::function<void(const Point& point)> on_begin = {};
};

// The file of a planned point's trace. Its name holds the whole id of the point as it was planned: `auto` and
// the strategy that it stands for are two points.
std::string trace_path(const std::string& directory, const Point& planned);

struct RunSummary {
  int64_t num_measured = 0, num_skipped = 0;  // points of this run
  int64_t num_before = 0;                     // finished by an earlier one
  int64_t num_bad = 0;  // wrong, failed or timed out: of the plan, also those measured before
};

// The study cannot be written any more, which is for the user to fix: thrown on all ranks, with the same
// words.
struct StudyLost : RefusedByAllRanks {
  using RefusedByAllRanks::RefusedByAllRanks;
};

// Collective over the world. study: on rank 0 only. Points whose id the study holds already are passed over.
// A point of batch size kLargest becomes the batches that a search tries. StudyLost.
RunSummary run_points(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                      const Resources& resources, const RunOptions& options, Watchdog& watchdog);

}  // namespace shardmark
