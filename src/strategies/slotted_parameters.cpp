// Parameters that a rank holds only its part of: a group is gathered into a slot of a small pool before its
// block computes.
//
// Note [Slots]: the uses of a micro-batch are a fixed sequence: every unit forward, then every unit but the
// last backward (the last stays gathered in between). Use i lives in slot i mod (prefetch + 1). When use i
// begins, use i - 1 is over, and its slot is the one of use i + prefetch: so that gather starts then. Root
// groups have slots of their own and stay until the next update.
#include "device/meter.h"
#include "strategies/sides.h"

namespace shardmark {
namespace {

class SlottedParameters final : public ParameterSide {
 public:
  SlottedParameters(ShardedModel& sharded, int64_t prefetch)
      : s_(sharded),
        own_(allocate_owned(s_.comm, s_.layout, MemoryUse::parameters, s_.types.master)),
        num_units_(static_cast<int64_t>(s_.schedule.units.size())),
        prefetch_(prefetch),
        works_(static_cast<size_t>(prefetch + 1)) {
    for (size_t g = 0; g < s_.layout.size(); ++g) {
      fill_initial(s_.model, g, s_.layout[g], s_.comm.rank(), s_.seed, own_[g]);
      aimed_.emplace_back(s_.layout[g].numel, s_.model.dtype(), s_.model.device());
      bind_parameters(s_.model, g, s_.layout[g], aimed_[g].whole());
    }
    const meter::Scope scope(MemoryUse::transient);
    const auto& table = s_.model.table();
    for (size_t i = 0; i < works_.size(); ++i)
      slots_.push_back(s_.comm.allocate(laws::largest_group(table, s_.layout), s_.model.dtype()));
    for (size_t g : s_.schedule.roots) {
      root_slots_.push_back(s_.comm.allocate(s_.layout[g].numel, s_.model.dtype()));
      aimed_[g].aim(root_slots_.back());
    }
  }

  void begin_micro_batch() override {
    for (auto& works : works_) wait_all(works);  // an evaluation leaves gathers ahead of its end
    num_started_ = 0;
    if (!roots_gathered_) {
      for (size_t g : s_.schedule.roots)
        for (auto& work : start_gather(s_.comm, s_.layout[g], aimed_[g].whole(), own_[g]))
          root_works_.push_back(std::move(work));
      roots_gathered_ = true;
    }
    start_until(0);
  }

  void before_forward(int64_t block) override {
    wait_all(root_works_);
    use(s_.schedule.unit_of_block[static_cast<size_t>(block)], /*forward=*/true);
  }
  void before_backward(int64_t block) override {
    use(s_.schedule.unit_of_block[static_cast<size_t>(block)], /*forward=*/false);
  }

  void after_update() override { roots_gathered_ = false; }

  const Parts& owned() override { return own_; }

 private:
  // Which unit the use at this position of the sequence is of.
  int64_t unit_at(int64_t position) const {
    return position < num_units_ ? position : 2 * (num_units_ - 1) - position;
  }
  int64_t num_uses() const { return 2 * num_units_ - 1; }
  at::Tensor slot_of(int64_t position) const {
    const auto group = static_cast<size_t>(s_.schedule.units[static_cast<size_t>(unit_at(position))]);
    return slots_[slot_index(position)].narrow(0, 0, s_.layout[group].numel);
  }
  size_t slot_index(int64_t position) const { return static_cast<size_t>(position % (prefetch_ + 1)); }

  // Starts the gathers of all uses up to this position, in order.
  void start_until(int64_t position) {
    for (; num_started_ <= position && num_started_ < num_uses(); ++num_started_) {
      const auto group = static_cast<size_t>(s_.schedule.units[static_cast<size_t>(unit_at(num_started_))]);
      works_[slot_index(num_started_)] =
          start_gather(s_.comm, s_.layout[group], slot_of(num_started_), own_[group]);
    }
  }

  void use(int64_t unit, bool forward) {
    if (unit < 0) return;
    const int64_t position = forward ? unit : 2 * (num_units_ - 1) - unit;
    start_until(position + prefetch_);
    wait_all(works_[slot_index(position)]);
    aimed_[static_cast<size_t>(s_.schedule.units[static_cast<size_t>(unit)])].aim(slot_of(position));
  }

  ShardedModel& s_;
  Parts own_;
  std::vector<AimedGroup> aimed_;  // [group]
  int64_t num_units_;
  int64_t prefetch_;
  std::vector<at::Tensor> slots_;       // prefetch + 1
  std::vector<at::Tensor> root_slots_;  // one per root group
  std::vector<Works> works_;            // [slot]: the gather into it
  Works root_works_;
  bool roots_gathered_ = false;  // since the last update
  int64_t num_started_ = 0;      // uses of this micro-batch whose gather has started
};

}  // namespace

std::unique_ptr<ParameterSide> make_slotted_parameters(ShardedModel& sharded, int64_t prefetch) {
  return std::make_unique<SlottedParameters>(sharded, prefetch);
}

}  // namespace shardmark
