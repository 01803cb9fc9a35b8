// What a training point describes: a model, a rank's part of it, and the executor of its steps. Measured
// points and training runs both use it.
#pragma once

#include "executor/executor.h"
#include "schema/point.h"

namespace shardmark {

// In three parts, each before the next on all ranks: it is made, which splits off communicators; allocate();
// state->publish() or load(), the first calls. So a rank that lacks memory leaves none waiting.
struct TrainingSetup {
  // Collective, and so is the end. All arguments, here and below, must outlive it.
  TrainingSetup(const Point& point, Communicator& comm);
  void allocate(int64_t first_step = 0);  // a rank may throw alone

  const Point& point;
  Communicator& comm;
  Programs programs;  // until allocate()
  std::shared_ptr<const Teams> teams;
  std::unique_ptr<Model> model;
  std::unique_ptr<TrainingState> state;
  std::unique_ptr<GradientGuard> guard;
  std::unique_ptr<Executor> executor;
};

}  // namespace shardmark
