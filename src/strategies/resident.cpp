// Sides that keep whole groups on every rank. Parameters: each rank updates its part, and the parts are
// gathered in place while the next forward already begins. Gradients: kept whole, reduced once per step.
#include "device/meter.h"
#include "strategies/sides.h"

namespace shardmark {
namespace {

class ResidentParameters final : public ParameterSide {
 public:
  explicit ResidentParameters(ShardedModel& sharded)
      : s_(sharded),
        flat_(allocate_flat(s_.model, s_.comm, s_.layout, MemoryUse::parameters)),
        gathers_(s_.layout.size()) {
    for (size_t g = 0; g < s_.layout.size(); ++g) {
      fill_initial(s_.model, g, s_.layout[g], {0, s_.layout[g].numel}, s_.seed, flat_.groups[g]);
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
      gathers_[g] = start_gather(s_.comm, s_.layout[g], flat_.groups[g],
                                 owned_part(s_.comm, s_.layout[g], flat_.groups[g]));
  }

  std::vector<at::Tensor> owned() override {
    std::vector<at::Tensor> parts;
    for (size_t g = 0; g < s_.layout.size(); ++g)
      parts.push_back(owned_part(s_.comm, s_.layout[g], flat_.groups[g]));
    return parts;
  }

  std::vector<at::Tensor> replicated() override {
    for (auto& works : gathers_) wait_all(works);
    return {flat_.buffer};
  }

 private:
  ShardedModel& s_;
  FlatModel flat_;
  std::vector<Works> gathers_;  // [group]: in flight since the last update
};

class ResidentGradients final : public GradientSide {
 public:
  explicit ResidentGradients(ShardedModel& sharded)
      : s_(sharded), flat_(allocate_flat(s_.model, s_.comm, s_.layout, MemoryUse::gradients)) {
    for (size_t g = 0; g < s_.layout.size(); ++g) bind_gradients(s_.model, g, s_.layout[g], flat_.groups[g]);
  }

  void begin_micro_batch(int64_t, bool last) override { reducing_ = last; }
  void before_backward(int64_t) override {}
  void after_backward(int64_t block) override {
    if (!reducing_) return;
    for (size_t g : s_.schedule.complete_at[static_cast<size_t>(block)])
      for (auto& work : start_reduce(s_.comm, s_.layout[g], flat_.groups[g]))
        works_.push_back(std::move(work));
  }
  void finish() override { wait_all(works_); }
  void clear() override { flat_.buffer.zero_(); }

  std::vector<at::Tensor> owned() override {
    std::vector<at::Tensor> parts;
    for (size_t g = 0; g < s_.layout.size(); ++g)
      parts.push_back(owned_part(s_.comm, s_.layout[g], flat_.groups[g]));
    return parts;
  }

 private:
  ShardedModel& s_;
  FlatModel flat_;
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
