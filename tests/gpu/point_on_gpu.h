// A training point for tests, and everything that is needed to measure it.
#pragma once

#include <string>

#include "specs/specs.h"
#include "sweep/workloads/workload.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {

inline Point training_point(const std::string& model, const std::string& strategy, int64_t ranks,
                            int64_t batch_size, const std::string& precision = "fp32") {
  Point point;
  point.workload = "training";
  point.ranks = ranks;
  point.seed = 3;
  auto& t = point.training;
  t.model = resolved_model(model);
  t.data = {"synthetic", {{"size", 64}}};
  t.strategy = resolved_strategy(strategy);
  t.optimizer = resolved_optimizer("adamw(lr=0.001, eps=1e-5)");
  t.precision = precision;
  t.batch_size = batch_size;
  point.sampling = {.warmup_steps = 2, .min_steps = 5, .max_steps = 5, .time_limit_s = 5, .precision = 1};
  return point;
}

// Everything else that a workload needs. It must outlive the workload.
struct DecisionInputs {
  WorkloadContext of(const Point& point, const HostGroup& group, Communicator& comm) {
    return {point, group, comm, resources, references, heartbeat};
  }
  Resources resources;
  ReferenceCache references;
  HeartbeatPage page{};
  Heartbeat heartbeat{page};
};

}  // namespace shardmark
