// Synchronised batch norm as an autograd function; the others are ATen's own.
#include "models/batch_norm.h"

#include <torch/csrc/autograd/custom_function.h>

namespace shardmark {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor per_channel(const at::Tensor& values) { return values.view({1, -1, 1, 1}); }

// What backward needs besides tensors.
struct RankSum : torch::CustomClassHolder {
  explicit RankSum(SumOverRanks sum) : sum(std::move(sum)) {}
  SumOverRanks sum;
};

// Note [Statistics of all ranks]
// Each direction reduces one small tensor. Forward: a rank's mean and variance are found in two passes over
// x, then packed in float64 as (n mean, n (variance + mean^2), n): sums of these give the statistics of the
// whole batch, and float64 leaves their difference exact enough for fp64 equality at 1e-10. n travels with
// them, so that ranks may hold unequal batches. Backward: dx needs the means of dy and of dy xhat over the
// whole batch; weight and bias get the local sums only, because strategies reduce parameter gradients.
struct SyncBatchNorm : torch::autograd::Function<SyncBatchNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const BatchNorm& norm) {
    const int64_t channels = x.size(1);
    const auto n = static_cast<double>(x.numel() / channels);
    const auto [local_mean, local_variance] = at::batch_norm_update_stats(x, {}, {}, 0);
    const at::Tensor m = local_mean.to(at::kDouble), v = local_variance.to(at::kDouble);
    const at::Tensor packed = at::cat({m * n, (v + m * m) * n, at::full({1}, n, m.options())});
    norm.model.sum_over_ranks(packed);

    const at::Tensor total = packed.narrow(0, 2 * channels, 1);
    const at::Tensor mean = packed.narrow(0, 0, channels) / total;
    const at::Tensor variance = packed.narrow(0, channels, channels) / total - mean * mean;
    norm.mean.lerp_(mean.to(x.dtype()), norm.momentum());
    norm.variance.lerp_((variance * total / (total - 1)).to(x.dtype()), norm.momentum());

    const at::Tensor mean_x = mean.to(x.dtype());
    ctx->save_for_backward({x, weight, mean_x, (variance + kEpsilon).rsqrt().to(x.dtype()), total});
    ctx->saved_data["sum"] =
        at::IValue::make_capsule(c10::make_intrusive<RankSum>(norm.model.sum_over_ranks));
    return std::get<0>(
        at::native_batch_norm(x, weight, bias, mean_x, variance.to(x.dtype()), false, 0, kEpsilon));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const at::Tensor& dy = outputs[0];
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse_std = saved[3],
                     &total = saved[4];
    const auto [none, dweight, dbias] = at::native_batch_norm_backward(
        dy, x, weight, {}, {}, mean, inverse_std, true, kEpsilon, {false, true, true});
    const at::Tensor packed = at::cat({dbias, dweight}).to(at::kDouble);
    static_cast<RankSum&>(*ctx->saved_data["sum"].toCapsule()).sum(packed);
    const auto means = (packed / total).to(x.dtype()).chunk(2);  // of dy, of dy xhat

    at::Tensor dx = at::addcmul(dy - per_channel(means[0]), x - per_channel(mean),
                                per_channel(inverse_std * means[1]), -1);
    dx.mul_(per_channel(weight * inverse_std));
    return {dx, dweight, dbias, {}};
  }
};

}  // namespace

BatchStatistics batch_statistics(const Options& options) {
  const auto text = options.at("batch_norm").get<std::string>();
  return text == "sync"     ? BatchStatistics::sync
         : text == "frozen" ? BatchStatistics::frozen
                            : BatchStatistics::local;
}

BatchNorm::BatchNorm(Model& owner, const std::string& name, BatchStatistics kind)
    : statistics(kind),
      model(owner),
      weight(owner.parameter(name + ".weight")),
      bias(owner.parameter(name + ".bias")),
      mean(owner.buffer(name + ".running_mean")),
      variance(owner.buffer(name + ".running_var")) {}

double BatchNorm::momentum() const { return model.recomputing ? 0 : kMomentum; }

at::Tensor BatchNorm::operator()(const at::Tensor& x) const {
  if (statistics == BatchStatistics::sync && model.training)
    return SyncBatchNorm::apply(x, weight, bias, *this);
  const bool training = statistics == BatchStatistics::local && model.training;
  return at::batch_norm(x, weight, bias, mean, variance, training, momentum(), kEpsilon,
                        /*cudnn_enabled=*/true);
}

}  // namespace shardmark
