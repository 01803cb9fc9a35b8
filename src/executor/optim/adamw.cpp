// AdamW, by torch's fused kernel, or by our own if it also writes the parameters' copy in the compute type.
// Source of the formula: Loshchilov and Hutter, ICLR 2019, algorithm 2.
#include <ATen/ops/_fused_adamw.h>

#include "base/registry.h"
#include "executor/optim/optimizer.h"
#include "kernels/fused.h"

namespace shardmark::adamw {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const Options& options, const std::vector<OptimizerShard>& shards, at::Device device)
      : lr_(options.at("lr").get<double>()),
        beta1_(options.at("beta1").get<double>()),
        beta2_(options.at("beta2").get<double>()),
        eps_(options.at("eps").get<double>()),
        weight_decay_(options.at("weight_decay").get<double>()),
        first_moments_(zeros_like_shards(shards)),
        second_moments_(zeros_like_shards(shards)),
        num_updates_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))) {
    for (const auto& shard : shards) {
      parameters_.push_back(shard.parameters);
      gradients_.push_back(shard.gradients);
    }
    steps_.assign(shards.size(), num_updates_);
    if (shards.empty() || !shards.front().copy.defined()) return;
    kernels_ = shards.front().kernels;
    for (size_t i = 0; i < shards.size(); ++i)
      memory_.push_back(
          {parameters_[i], gradients_[i], first_moments_[i], second_moments_[i], shards[i].copy});
  }

  void step(const UpdateControl& control) override {
    if (control.found_inf.defined())  // the kernel does not count steps
      num_updates_.add_(1 - control.found_inf);
    else
      num_updates_.add_(1);
    if (parameters_.empty()) return;
    for (const AdamWMemory& memory : memory_)
      fused_adamw(kernels_, memory, {lr_, beta1_, beta2_, eps_, weight_decay_}, num_updates_,
                  control.divisor);
    if (kernels_) return;
    at::_fused_adamw_(parameters_, gradients_, first_moments_, second_moments_, /*max_exp_avg_sqs=*/{},
                      steps_, lr_, beta1_, beta2_, weight_decay_, eps_, /*amsgrad=*/false,
                      /*maximize=*/false, optional(control.divisor), optional(control.found_inf));
  }

  void set_learning_rate(double lr) override { lr_ = lr; }

  std::vector<OptimizerState> state() const override {
    return {{"exp_avg", first_moments_}, {"exp_avg_sq", second_moments_}};
  }
  at::Tensor num_updates() const override { return num_updates_; }

 private:
  double lr_, beta1_, beta2_, eps_, weight_decay_;
  std::vector<at::Tensor> parameters_, gradients_, first_moments_, second_moments_;
  at::Tensor num_updates_;
  std::vector<at::Tensor> steps_;  // [shard]: num_updates_ each
  Kernels kernels_;
  std::vector<AdamWMemory> memory_;  // [shard], for our own kernel
};

std::unique_ptr<Optimizer> make(const Options& options, const std::vector<OptimizerShard>& shards,
                                at::Device device) {
  return std::make_unique<AdamW>(options, shards, device);
}

const Registration<OptimizerEntry> registered{"adamw", {"AdamW, fused", make}};

}  // namespace
}  // namespace shardmark::adamw
