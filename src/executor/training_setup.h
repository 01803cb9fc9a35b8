// Everything that a training point describes on one rank: the model, the rank's part of it, and the executor
// of its steps. Measured points and training runs both use it.
#pragma once

#include "executor/executor.h"
#include "schema/point.h"

namespace shardmark {

// What a rank knows of the other stages of its pipeline.
struct OtherStages {  // of the programs of all stages
  std::vector<strategies::ProcessGroupUse>
      process_groups;                     // [stage]: its part of the model; empty: there is one stage
  std::vector<specs::ModelTable> tables;  // [stage]: of its part of the model; none: it is whole
};

// It is set up in three phases, and all ranks must finish one before any begins the next: the constructor,
// which splits off communicators; allocate(); and the first communication, by state->publish() or load(). A
// rank that runs out of memory then leaves no other rank waiting.
struct TrainingSetup {
  // Construction and destruction are collective. All arguments, here and below, must outlive this.
  TrainingSetup(const Point& point, Communicator& comm);
  void allocate(int64_t first_step = 0);  // a rank may throw alone

  // The index of the copy of the model that this rank has a part of, which decides which samples it gets.
  int64_t data_rank() const { return specs::mesh_of(point).data_index_of(comm.rank()); }

  const Point& point;
  Communicator& comm;
  specs::ModelTable whole;         // the whole model
  strategies::RankStep rank_step;  // the step of this rank's part of the model
  Programs programs;               // moved from by allocate()
  OtherStages stages;
  std::shared_ptr<const ProcessGroups> process_groups;
  std::unique_ptr<Model> model;
  std::unique_ptr<TrainingState> state;
  std::unique_ptr<GradientGuard> guard;
  std::unique_ptr<Executor> executor;
};

}  // namespace shardmark
