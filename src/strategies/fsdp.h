// How fsdp, zero3 and hpz hold parameters and gradients: in shards, and whole only in a few slots. fsdp.cpp
// explains the algorithm.
#pragma once

#include <set>

#include "strategies/slots.h"
#include "strategies/step_builder.h"

namespace shardmark::strategies {

// One use of a block's units (groups of parameters that no other block uses) by one or several consecutive
// actions, and the slot that the units are gathered into.
struct UnitUse : SlotUse {
  std::vector<size_t> groups;
  Compute first = Compute::forward;  // the first of the actions
  int64_t num_actions = 1;
};
std::vector<UnitUse> unit_uses(const std::vector<Position>& positions, int64_t num_slots);

// Parameters of which a rank holds only its shard. Root groups have slots of their own and stay gathered
// through a whole step.
class ShardedParameters : public ShardingPolicy {
 public:
  ShardedParameters(StepBuilder& step, ModelShards shards);

  const ModelShards& own() const { return shards_; }
  void before(const Position& at) override;
  void after(const Position& at) override;

 protected:
  int64_t num_slots() const { return std::ssize(slots_); }
  const std::vector<UnitUse>& uses() const { return uses_; }
  const UnitUse& current() const { return uses_[now_]; }
  Slice slot_of(const UnitUse& use, size_t group) const;
  virtual const ModelShards& shards_for(const UnitUse&) const { return shards_; }

  StepBuilder& step_;

 private:
  void unshard_until(size_t end);

  ModelShards shards_;
  std::vector<Slice> slots_, roots_;               // [slot], [root group]
  std::vector<UnitUse> uses_;                      // of the whole step, in order
  std::vector<std::vector<Operations>> unshards_;  // [slot]: the gathers into it that are in flight
  std::vector<Operations> of_roots_;
  size_t now_ = 0, num_unsharded_ = 0;  // indices of uses
  int64_t num_done_ = 0;                // actions of the current use
};

// Gradients of which a rank keeps only its shard. They are reduced after every micro-batch, and the owner
// adds the results up. After the last micro-batch, replicas sum their shards.
class ShardedGradients : public ShardingPolicy {
 public:
  explicit ShardedGradients(StepBuilder& step);

  const ModelShards& own() const { return own_; }
  void before(const Position& at) override;
  void after(const Position& at) override;
  void finish() override;

 private:
  struct Reduction {
    size_t group = 0;
    Operations operations;
    bool is_first = false, is_last = false;  // among the micro-batches of this group
  };
  // The gradients of a root group, or of a block's units.
  struct Slot {
    // Gradients as blocks compute them, and as they are sent: the same memory, or converted to another type.
    Slice memory, sent;
    std::vector<Reduction> reductions = {};  // of groups in the slot
  };
  Slot allocate_slot(const std::string& name, int64_t numel);
  bool is_of_several_chunks(size_t group) const;
  void add_up(Slot& slot);  // adds what was reduced to this rank's shards

  StepBuilder& step_;
  ModelShards own_;
  std::vector<Slot> slots_, roots_;
  std::vector<Slot*> slot_of_;  // [group]: the slot that it is in, or was in last
  std::set<size_t> begun_;      // groups of several chunks
  size_t next_ = 0;             // index of the next slot to use
  std::vector<Operations> of_replicas_;
};

}  // namespace shardmark::strategies
