// What a training point describes: a model, a rank's part of it, and the executor of its steps. Measured
// points and training runs both use it.
#pragma once

#include "executor/executor.h"
#include "schema/point.h"

namespace shardmark {

struct TrainingSetup {
  // Collective; then a rank may throw alone. All arguments must outlive it.
  TrainingSetup(const Point& point, Communicator& comm, PhaseClock& clock, int64_t first_step = 0);
  TrainingSetup(const TrainingSetup&) = delete;  // the model knows where it is
  TrainingSetup& operator=(const TrainingSetup&) = delete;

  std::unique_ptr<Communicator> statistics_comm;  // of synchronised batch norm
  std::unique_ptr<Model> model;
  std::unique_ptr<TrainingState> state;
  std::unique_ptr<GradientGuard> guard;
  std::unique_ptr<Executor> executor;
};

}  // namespace shardmark
