// Sides that keep whole groups on every rank. Parameters: each rank updates its part, and the parts are
// gathered in place while the next forward already begins. Gradients: kept whole, reduced once per step. In
// mixed precision a rank holds master weights and main gradients of its part only.
#include "device/meter.h"
#include "strategies/sides.h"

namespace shardmark {
namespace {

// What this rank owns: inside `flat`, or in memory of the master's type.
Parts own_parts(const ShardedModel& s, const FlatModel& flat, MemoryUse use) {
  if (s.types.mixed()) return allocate_owned(s.comm, s.layout, use, s.types.master);
  Parts parts;
  for (size_t g = 0; g < s.layout.size(); ++g)
    parts.push_back(owned_parts(s.comm, s.layout[g], flat.groups[g]));
  return parts;
}

class ResidentParameters final : public ParameterSide {
 public:
  explicit ResidentParameters(ShardedModel& sharded)
      : s_(sharded),
        flat_(allocate_flat(s_.model, s_.comm, s_.layout, MemoryUse::parameters, s_.types.compute)),
        own_(own_parts(s_, flat_, MemoryUse::parameters)),
        gathers_(s_.layout.size()) {
    for (size_t g = 0; g < s_.layout.size(); ++g) {
      fill_initial(s_.model, g, s_.layout[g], {0, s_.layout[g].numel}, s_.seed, flat_.groups[g]);
      if (s_.types.mixed()) fill_initial(s_.model, g, s_.layout[g], s_.comm.rank(), s_.seed, own_[g]);
      bind_parameters(s_.model, g, s_.layout[g], flat_.groups[g]);
    }
  }

  void before_forward(int64_t block) override {
    for (size_t g = 0; g < s_.layout.size(); ++g)
      if (s_.model.table().groups[g].first_block == block) wait_all(gathers_[g]);
  }
  void before_backward(int64_t) override {}

  void after_update() override {
    for (size_t g = 0; g < s_.layout.size(); ++g)
      gathers_[g] = start_gather(s_.comm, s_.layout[g], flat_.groups[g], own_[g]);
  }

  const Parts& owned() override { return own_; }

  std::vector<at::Tensor> replicated() override {
    for (auto& works : gathers_) wait_all(works);
    return {flat_.buffer};
  }

 private:
  ShardedModel& s_;
  FlatModel flat_;
  Parts own_;                   // of flat_, or memory of its own if mixed
  std::vector<Works> gathers_;  // [group]: in flight since the last update
};

// Micro-batches add up in the type that is reduced.
class ResidentGradients final : public GradientSide {
 public:
  explicit ResidentGradients(ShardedModel& sharded)
      : s_(sharded),
        flat_(allocate_flat(s_.model, s_.comm, s_.layout, MemoryUse::gradients, s_.types.compute)),
        reduced_(s_.types.converts()
                     ? allocate_flat(s_.model, s_.comm, s_.layout, MemoryUse::transient, s_.types.reduce)
                     : flat_),
        own_(own_parts(s_, flat_, MemoryUse::gradients)) {
    for (size_t g = 0; g < s_.layout.size(); ++g) bind_gradients(s_.model, g, s_.layout[g], flat_.groups[g]);
  }

  void begin_micro_batch(int64_t, bool last) override { reducing_ = last; }
  void before_backward(int64_t) override {}
  void after_backward(int64_t block) override {
    for (size_t g : s_.schedule.complete_at[static_cast<size_t>(block)]) {
      if (s_.types.converts()) {
        reduced_.groups[g].add_(flat_.groups[g]);
        flat_.groups[g].zero_();
      }
      if (!reducing_) continue;
      for (auto& work : start_reduce(s_.comm, s_.layout[g], reduced_.groups[g]))
        works_.push_back(std::move(work));
    }
  }
  void finish() override {
    wait_all(works_);
    for (size_t g = 0; g < s_.layout.size(); ++g) {
      if (s_.types.mixed()) {
        const auto parts = owned_parts(s_.comm, s_.layout[g], reduced_.groups[g]);
        for (size_t piece = 0; piece < parts.size(); ++piece) own_[g][piece].copy_(parts[piece]);
      }
      start_replica_sum(s_, own_[g], works_);
    }
    wait_all(works_);
  }
  void clear() override { reduced_.buffer.zero_(); }

  const Parts& owned() override { return own_; }

 private:
  ShardedModel& s_;
  FlatModel flat_;
  FlatModel reduced_;  // flat_ itself unless types.converts()
  Parts own_;          // of flat_, or memory of its own if mixed
  bool reducing_ = false;
  Works works_;
};

}  // namespace

std::unique_ptr<ParameterSide> make_resident_parameters(ShardedModel& sharded) {
  return std::make_unique<ResidentParameters>(sharded);
}
std::unique_ptr<GradientSide> make_resident_gradients(ShardedModel& sharded) {
  return std::make_unique<ResidentGradients>(sharded);
}

}  // namespace shardmark
