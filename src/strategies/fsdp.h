// What fsdp, zero3 and hpz hold: parameters and gradients in shards, whole only in a few slots. The algorithm
// is in fsdp.cpp.
#pragma once

#include "strategies/slots.h"
#include "strategies/step.h"

namespace shardmark::strategies {

// A use of a unit (a group that one block alone uses) by actions that follow each other, and its slot.
struct UnitUse : SlotUse {
  Compute first = Compute::forward;  // action
  int64_t num_actions = 1;
};
std::vector<UnitUse> unit_uses(const std::vector<Position>& positions, int64_t num_slots);

// Parameters that a rank holds only its shard of. Root groups have slots of their own and stay whole through
// a step.
class ShardedParameters : public Holder {
 public:
  ShardedParameters(StepBuilder& step, ModelShards shards);

  const ModelShards& own() const { return shards_; }
  void before(const Position& at) override;
  void after(const Position& at) override;

 protected:
  int64_t num_slots() const { return std::ssize(slots_); }
  const std::vector<UnitUse>& uses() const { return uses_; }
  const UnitUse& current() const { return uses_[now_]; }
  Slice slot_of(const UnitUse& use) const;
  virtual const ModelShards& shards_for(const UnitUse&) const { return shards_; }

  StepBuilder& step_;

 private:
  void unshard_until(size_t end);

  ModelShards shards_;
  std::vector<Slice> slots_, roots_;  // [slot], [root group]
  std::vector<UnitUse> uses_;         // of the step, in order
  std::vector<Operations> unshards_;  // [slot]: into it
  std::vector<Operations> of_roots_;
  size_t now_ = 0, num_unsharded_ = 0;  // uses
  int64_t num_done_ = 0;                // actions of the use now
};

// Gradients that a rank keeps only its shard of. Every micro-batch reduces, and the owner adds up; with the
// last one, replicas add up theirs.
class ShardedGradients : public Holder {
 public:
  explicit ShardedGradients(StepBuilder& step);

  const ModelShards& own() const { return own_; }
  void before(const Position& at) override;
  void after(const Position& at) override;
  void finish() override;

 private:
  struct Slot {
    Slice memory, sent;  // as blocks compute, and as gradients travel: the same, or converted
    size_t group = 0;    // that is in it
    Operations reduction = {};
    bool is_first = false, is_last = false;  // of the group's micro-batches
  };
  Slot allocate_slot(const std::string& name, int64_t numel, size_t group);
  void add_up(Slot& slot);  // what was reduced

  StepBuilder& step_;
  ModelShards own_;
  std::vector<Slot> slots_, roots_;
  std::vector<Slot*> slot_of_;  // [group]: that it is in, or was last
  size_t next_ = 0;             // slot
  std::vector<Operations> of_replicas_;
};

}  // namespace shardmark::strategies
