// Runs the points of a plan one after the other: takes their ranks out of the world, measures, stores.
#pragma once

#include <optional>

#include "comm/communicator.h"
#include "plan/plan.h"
#include "runner/watchdog.h"
#include "schema/study.h"
#include "workloads/workload.h"

namespace shardmark {

struct RunOptions {
  std::string transport;  // for points that name none
  at::Device device{at::kCPU};
  bool quiet = false;
};

struct RunSummary {
  int64_t num_points = 0;  // of this run
  int64_t num_bad = 0;     // wrong, failed or timed out
};

// Collective over the world. study: on rank 0 only. Points whose id the study holds already are passed over.
// A point of batch size kLargest becomes the batches that a search tries.
// A study that cannot be written any more ends the run on all ranks (SystemError).
RunSummary run_points(const HostGroup& world, const std::vector<Point>& points, std::optional<Study>& study,
                      const Placement& placement, const RunOptions& options, Watchdog& watchdog);

}  // namespace shardmark
