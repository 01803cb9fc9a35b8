// What a training point describes: a model, a rank's part of it, and the executor of its steps. Measured
// points and training runs both use it.
#pragma once

#include "executor/executor.h"
#include "schema/point.h"

namespace shardmark {

// What a rank knows of the others of its pipeline.
struct OtherStages {
  std::vector<strategies::TeamUse> teams;  // of the programs of all stages
  std::vector<specs::ModelTable> tables;   // [stage]: of its part of the model; none: it is whole
};

// In three parts, each before the next on all ranks: it is made, which splits off communicators; allocate();
// state->publish() or load(), the first calls. So a rank that lacks memory leaves none waiting.
struct TrainingSetup {
  // Collective, and so is the end. All arguments, here and below, must outlive it.
  TrainingSetup(const Point& point, Communicator& comm);
  void allocate(int64_t first_step = 0);  // a rank may throw alone

  // The copy of the model that this rank has a part of: whose samples it sees.
  int64_t data_rank() const { return specs::mesh_of(point).data_index_of(comm.rank()); }

  const Point& point;
  Communicator& comm;
  specs::ModelTable whole;         // of the model
  strategies::RankStep rank_step;  // of this rank's part of it
  Programs programs;               // until allocate()
  OtherStages stages;
  std::shared_ptr<const Teams> teams;
  std::unique_ptr<Model> model;
  std::unique_ptr<TrainingState> state;
  std::unique_ptr<GradientGuard> guard;
  std::unique_ptr<Executor> executor;
};

}  // namespace shardmark
