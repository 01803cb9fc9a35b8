// Looks up an optimizer by its name, and wraps one whose state lies in host memory.
#include "executor/optim/optimizer.h"

#include "base/registry.h"

namespace shardmark {

std::unique_ptr<Optimizer> make_optimizer(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                          at::Device device) {
  const meter::Scope scope(MemoryUse::optimizer);
  return make_in_scope(choice, shards, device);
}

std::unique_ptr<Optimizer> make_in_scope(const Choice& choice, const std::vector<OptimizerShard>& shards,
                                         at::Device device) {
  return Registry<OptimizerEntry>::instance()
      .get(choice.name, "optimizer")
      .make(choice.options, shards, device);
}

std::vector<at::Tensor> zeros_like_shards(const std::vector<OptimizerShard>& shards) {
  std::vector<at::Tensor> state;
  for (const auto& shard : shards) state.push_back(at::zeros_like(shard.parameters));
  return state;
}

namespace {

at::Tensor host_copy(const at::Tensor& tensor) {
  at::Tensor copy =
      at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(tensor.is_cuda()));
  return copy.copy_(tensor);
}

// An optimizer in host memory for parameters on a device. On CPU ranks it makes the same copies, so that its
// cost and its correctness can be checked without a GPU. Source: Ren et al., ZeRO-Offload, ATC 2021.
class Offloaded final : public Optimizer {
 public:
  Offloaded(const Choice& choice, std::vector<OptimizerShard> shards) : device_(std::move(shards)) {
    const meter::Scope scope(MemoryUse::offloaded);
    for (const auto& shard : device_)
      host_.push_back({host_copy(shard.parameters), host_copy(shard.gradients)});
    optimizer_ = make_in_scope(choice, host_, at::kCPU);
    if (!device_.empty() && device_.front().parameters.is_cuda()) count_host_memory();
  }
  ~Offloaded() override { meter::remove(counted_bytes_, MemoryUse::offloaded); }
  Offloaded(const Offloaded&) = delete;
  Offloaded& operator=(const Offloaded&) = delete;

  void step(const UpdateControl& control) override {
    for (size_t i = 0; i < device_.size(); ++i) host_[i].gradients.copy_(device_[i].gradients);
    optimizer_->step({on_host(control.divisor), on_host(control.found_inf)});
    for (size_t i = 0; i < device_.size(); ++i) device_[i].parameters.copy_(host_[i].parameters);
  }
  void set_learning_rate(double lr) override { optimizer_->set_learning_rate(lr); }
  std::vector<OptimizerState> state() const override { return optimizer_->state(); }
  at::Tensor num_updates() const override { return optimizer_->num_updates(); }
  void parameters_changed() override {
    for (size_t i = 0; i < device_.size(); ++i) host_[i].parameters.copy_(device_[i].parameters);
  }

 private:
  static at::Tensor on_host(const at::Tensor& value) { return value.defined() ? value.cpu() : value; }

  // Counts the host memory by hand: on a GPU, none of the allocators that the meter reads sees it.
  void count_host_memory() {
    for (const auto& shard : host_)
      counted_bytes_ += static_cast<int64_t>(shard.parameters.nbytes() + shard.gradients.nbytes());
    for (const auto& [kind, shards] : optimizer_->state())
      for (const auto& shard : shards) counted_bytes_ += static_cast<int64_t>(shard.nbytes());
    meter::add(counted_bytes_, MemoryUse::offloaded);
  }

  std::vector<OptimizerShard> device_, host_;
  std::unique_ptr<Optimizer> optimizer_;  // over host_
  int64_t counted_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_offloaded_optimizer(const Choice& choice,
                                                    std::vector<OptimizerShard> shards) {
  return std::make_unique<Offloaded>(choice, std::move(shards));
}

}  // namespace shardmark
