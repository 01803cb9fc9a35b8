// SGD with momentum and weight decay, by torch's fused kernel. Momentum starts at zero, so that after the
// first step it is the gradient itself, as in torch.optim.
#include <ATen/ops/_fused_sgd.h>

#include "base/registry.h"
#include "executor/optim/optimizer.h"

namespace shardmark::sgd {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const Options& options, const std::vector<OptimizerShard>& shards)
      : lr_(options.at("lr").get<double>()),
        momentum_(options.at("momentum").get<double>()),
        weight_decay_(options.at("weight_decay").get<double>()) {
    if (momentum_ != 0) momenta_ = zeros_like_shards(shards);
    for (const auto& shard : shards) {
      parameters_.push_back(shard.parameters);
      gradients_.push_back(shard.gradients);
    }
  }

  void step(const UpdateControl& control) override {
    if (parameters_.empty()) return;
    at::_fused_sgd_(parameters_, gradients_, momenta_, weight_decay_, momentum_, lr_, /*dampening=*/0,
                    /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false,
                    optional(control.divisor), optional(control.found_inf));
  }

  void set_learning_rate(double lr) override { lr_ = lr; }

  std::vector<OptimizerState> state() const override {
    if (momentum_ == 0) return {};
    return {{"momentum", momenta_}};
  }

 private:
  double lr_, momentum_, weight_decay_;
  std::vector<at::Tensor> parameters_, gradients_, momenta_;
};

std::unique_ptr<Optimizer> make(const Options& options, const std::vector<OptimizerShard>& shards,
                                at::Device) {
  return std::make_unique<Sgd>(options, shards);
}

const Registration<OptimizerEntry> registered{"sgd", {"SGD with momentum, fused", make}};

}  // namespace
}  // namespace shardmark::sgd
