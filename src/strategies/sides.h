// The two sides of a sharded strategy, put together in sharded.h: who holds parameters between uses, and who
// holds gradients. fsdp and zero3 are choices of sides and of a layout (laws/layout.h); see README.md for the
// table.
#pragma once

#include "laws/schedule.h"
#include "strategies/flat.h"
#include "strategies/moves.h"

namespace shardmark {

// What both sides work on. Values live as long as the strategy.
//
// Note [Groups]: with fewer ranks in a group than there are, `comm` spans the group and `replicas` the ranks
// that own the same part in other groups. A part of the gradients is summed in its group first, and on the
// last micro-batch among the replicas.
struct ShardedModel {
  Model& model;
  Communicator& all;
  std::unique_ptr<Communicator> own_group, replicas;  // nullptr where one group is all there is
  Communicator& comm;
  std::vector<laws::GroupLayout> layout;
  laws::Schedule schedule;
  int64_t seed;
  Precision types;
};

class ParameterSide {
 public:
  virtual ~ParameterSide() = default;
  virtual void begin_micro_batch() {}
  virtual void before_forward(int64_t block) = 0;
  virtual void before_backward(int64_t block) = 0;
  virtual void after_update() {}
  virtual const Parts& owned() = 0;                            // which the optimizer updates
  virtual std::vector<at::Tensor> replicated() { return {}; }  // what every rank holds alike between steps
};

class GradientSide {
 public:
  virtual ~GradientSide() = default;
  virtual void begin_micro_batch(int64_t index, bool last) = 0;
  virtual void before_backward(int64_t block) = 0;
  virtual void after_backward(int64_t block) = 0;
  virtual void finish() = 0;         // after it, owned() holds the reduced gradient
  virtual void clear() = 0;          // after the update
  virtual const Parts& owned() = 0;  // gradients of this rank's parts
};

// Starts the sum of what this rank owns of a group among replicas; nothing where there are none.
void start_replica_sum(ShardedModel& sharded, const std::vector<at::Tensor>& parts, Works& works);

std::unique_ptr<ParameterSide> make_resident_parameters(ShardedModel& sharded);
std::unique_ptr<ParameterSide> make_slotted_parameters(ShardedModel& sharded, int64_t prefetch);
std::unique_ptr<GradientSide> make_resident_gradients(ShardedModel& sharded);
std::unique_ptr<GradientSide> make_slotted_gradients(ShardedModel& sharded);

}  // namespace shardmark
