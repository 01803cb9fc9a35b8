// Gradients that a rank keeps only its part of: backward of a block fills a slot, which is reduced to the
// owners while the next block computes into the other slot. Every micro-batch reduces, and the owner adds up.
#include "device/meter.h"
#include "laws/sharded_cost.h"
#include "strategies/sides.h"

namespace shardmark {
namespace {

class SlottedGradients final : public GradientSide {
 public:
  explicit SlottedGradients(ShardedModel& sharded)
      : s_(sharded), own_(allocate_owned(s_.comm, s_.layout, MemoryUse::gradients, s_.types.master)) {
    const meter::Scope scope(MemoryUse::transient);
    for (int64_t i = 0; i < laws::kGradientSlots; ++i)
      slots_.push_back(make_slot(laws::largest_group(s_.model.table(), s_.layout), 0));
    for (size_t g = 0; g < s_.layout.size(); ++g) {
      aimed_.emplace_back(s_.layout[g].numel, s_.model.dtype(), s_.model.device());
      bind_gradients(s_.model, g, s_.layout[g], aimed_[g].whole());
    }
    for (size_t g : s_.schedule.roots) {
      roots_.push_back(make_slot(s_.layout[g].numel, g));
      aimed_[g].aim(roots_.back().memory);
    }
  }

  void begin_micro_batch(int64_t index, bool last) override {
    finish();  // of the micro-batch before
    first_ = index == 0;
    last_ = last;
    position_ = 0;
    for (auto& root : roots_) root.memory.zero_();
  }

  void before_backward(int64_t block) override {
    const int64_t group = s_.schedule.own_group[static_cast<size_t>(block)];
    if (group == laws::kNoGroup) return;
    Slot& slot = slots_[position_ % slots_.size()];
    finish(slot);
    slot.group = static_cast<size_t>(group);
    aimed_[slot.group].aim(slot.memory);
    aimed_[slot.group].whole().zero_();
  }

  void after_backward(int64_t block) override {
    for (size_t group : s_.schedule.complete_at[static_cast<size_t>(block)]) {
      Slot* slot = nullptr;
      for (auto& root : roots_)
        if (root.group == group) slot = &root;
      if (slot == nullptr) slot = &slots_[position_++ % slots_.size()];
      slot->reduced = reduced(*slot, aimed_[group].whole());
      slot->works = start_reduce(s_.comm, s_.layout[group], slot->reduced);
    }
  }

  void finish() override {
    for (auto& slot : slots_) finish(slot);
    for (auto& root : roots_) finish(root);
    wait_all(works_);
  }

  void clear() override {}  // the first micro-batch of the next step overwrites

  const Parts& owned() override { return own_; }

 private:
  struct Slot {
    at::Tensor memory;     // as long as the largest group
    at::Tensor converted;  // the same in the type that is reduced, where that is another
    size_t group;          // that is in it
    at::Tensor reduced;    // its gradients on their way
    Works works;
  };

  Slot make_slot(int64_t numel, size_t group) {
    const auto& types = s_.types;
    return {s_.comm.allocate(numel, types.compute),
            types.converts() ? s_.comm.allocate(numel, types.reduce) : at::Tensor(),
            group,
            {},
            {}};
  }

  at::Tensor reduced(const Slot& slot, const at::Tensor& gradients) const {
    if (!slot.converted.defined()) return gradients;
    return slot.converted.narrow(0, 0, gradients.numel()).copy_(gradients);
  }

  void finish(Slot& slot) {
    if (slot.works.empty()) return;
    wait_all(slot.works);
    const auto parts = owned_parts(s_.comm, s_.layout[slot.group], slot.reduced);
    const auto& own = own_[slot.group];
    for (size_t piece = 0; piece < parts.size(); ++piece) {
      if (first_)
        own[piece].copy_(parts[piece]);
      else
        own[piece].add_(parts[piece]);
    }
    if (last_) start_replica_sum(s_, own, works_);
  }

  ShardedModel& s_;
  Parts own_;
  std::vector<AimedGroup> aimed_;  // [group]
  std::vector<Slot> slots_;
  std::vector<Slot> roots_;
  size_t position_ = 0;              // units whose backward is over in this micro-batch
  bool first_ = true, last_ = true;  // micro-batch of the step
  Works works_;                      // among replicas
};

}  // namespace

std::unique_ptr<GradientSide> make_slotted_gradients(ShardedModel& sharded) {
  return std::make_unique<SlottedGradients>(sharded);
}

}  // namespace shardmark
