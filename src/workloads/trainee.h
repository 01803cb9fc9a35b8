// What a training point says of the thing that trains: a model, the strategy that holds it, and the loop over
// both. Measured points and training runs are made of the same.
#pragma once

#include "schema/point.h"
#include "workloads/training_loop.h"

namespace shardmark {

struct Trainee {
  // Collective; then a rank may throw alone. All arguments must outlive it.
  Trainee(const Point& point, Communicator& comm, PhaseClock& clock, int64_t first_step = 0);

  std::unique_ptr<Communicator> statistics_comm;  // of synchronised batch norm
  std::unique_ptr<Model> model;
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<GradientGuard> guard;
  std::unique_ptr<TrainingLoop> loop;
};

}  // namespace shardmark
