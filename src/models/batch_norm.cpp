// Synchronized batch norm as an autograd function. The other kinds use ATen's own batch norm, or the kernels
// of src/kernels.
#include "models/batch_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include "kernels/fused.h"

namespace shardmark {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor per_channel(const at::Tensor& values) { return values.view({1, -1, 1, 1}); }

// The type of statistics and of computations with them: float for 16-bit activations, as in PyTorch's mixed
// precision.
at::ScalarType precise_type(const at::Tensor& x) {
  return at::isReducedFloatingType(x.scalar_type()) ? at::kFloat : x.scalar_type();
}

// Mean and variance of this rank's activations. The CPU's kernels compute them in the type of the running
// statistics.
std::tuple<at::Tensor, at::Tensor> local_statistics(const at::Tensor& x) {
  if (!at::isReducedFloatingType(x.scalar_type())) return at::batch_norm_update_stats(x, {}, {}, 0);
  const at::Tensor unused = at::zeros({x.size(1)}, x.options().dtype(at::kFloat));
  return at::batch_norm_update_stats(x, unused, at::ones_like(unused), 0);
}

void sum_over_ranks(const Model& model, const at::Tensor& values) {
  model.communicate(specs::Dimension::data, specs::Collective::all_reduce, values, values);
}

// What backward needs in addition to tensors.
struct RankSum : torch::CustomClassHolder {
  explicit RankSum(const Model& of) : model(of) {}
  const Model& model;
};

// Note [Statistics of all ranks]
// Each direction all-reduces one small tensor. In forward, a rank computes its mean and variance in two
// passes over x, and packs them in float64 as (n mean, n (variance + mean^2), n). The sums of these over
// ranks give the statistics of the whole batch, and float64 keeps their difference exact enough for equality
// at 1e-10 in fp64. The count n is part of the message, so that ranks may have batches of different sizes. In
// backward, dx needs the means of dy and of dy xhat over the whole batch. Weight and bias get the local sums
// only, because strategies reduce the gradients of parameters. Around 16-bit activations every per-channel
// value is a float, weight and bias included, because kernels on a GPU need float statistics, and kernels on
// the CPU need one type for all of them.
struct SyncBatchNorm : torch::autograd::Function<SyncBatchNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const BatchNorm& norm) {
    const int64_t channels = x.size(1), values = x.numel() / channels;
    const auto n = static_cast<double>(values);
    const auto [local_mean, local_variance] = local_statistics(x);
    const at::Tensor m = local_mean.to(at::kDouble), v = local_variance.to(at::kDouble);
    const at::Tensor packed = at::cat({m * n, (v + m * m) * n, at::full({1}, n, m.options())});
    sum_over_ranks(norm.model, packed);

    const at::Tensor total = packed.narrow(0, 2 * channels, 1);
    const at::Tensor mean = packed.narrow(0, 0, channels) / total;
    const at::Tensor variance = packed.narrow(0, channels, channels) / total - mean * mean;
    norm.mean.lerp_(mean.to(norm.mean.scalar_type()), norm.momentum());
    norm.variance.lerp_((variance * total / (total - 1)).to(norm.variance.scalar_type()), norm.momentum());

    const auto precise = precise_type(x);
    const at::Tensor w = weight.to(precise), mean_x = mean.to(precise);
    ctx->save_for_backward({x, w, mean_x, (variance + kEpsilon).rsqrt().to(precise), total});
    ctx->saved_data["sum"] = at::IValue::make_capsule(c10::make_intrusive<RankSum>(norm.model));
    return std::get<0>(
        at::native_batch_norm(x, w, bias.to(precise), mean_x, variance.to(precise), false, 0, kEpsilon));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const at::Tensor& dy = outputs[0];
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse_std = saved[3],
                     &total = saved[4];
    const auto [none, dweight, dbias] = at::native_batch_norm_backward(
        dy, x, weight, {}, {}, mean, inverse_std, true, kEpsilon, {false, true, true});
    const at::Tensor packed = at::cat({dbias, dweight}).to(at::kDouble);
    sum_over_ranks(static_cast<RankSum&>(*ctx->saved_data["sum"].toCapsule()).model, packed);
    const auto means = (packed / total).to(mean.scalar_type()).chunk(2);  // of dy, of dy xhat

    at::Tensor dx = at::addcmul(dy - per_channel(means[0]), x - per_channel(mean),
                                per_channel(inverse_std * means[1]), -1);
    dx.mul_(per_channel(weight * inverse_std));
    const auto dtype = x.scalar_type();
    return {dx.to(dtype), dweight.to(dtype), dbias.to(dtype), {}};
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

double BatchNorm::momentum() const { return model.recompute ? 0 : kMomentum; }

bool BatchNorm::has_kernels(const at::Tensor& x) const {
  return model.fused && statistics == BatchStatistics::local && model.training &&
         x.scalar_type() == at::kBFloat16 && x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor BatchNorm::by_kernels(const at::Tensor& x, const at::Tensor& added, bool relu) const {
  return fused_batch_norm(model.fused, x, added, weight, bias, {mean, variance, momentum()}, kEpsilon, relu);
}

at::Tensor BatchNorm::relu(const at::Tensor& x, const at::Tensor& added) const {
  if (has_kernels(x)) return by_kernels(x, added, /*relu=*/true);
  at::Tensor y = (*this)(x);
  if (added.defined()) y.add_(added);
  return y.relu_();
}

at::Tensor BatchNorm::operator()(const at::Tensor& x) const {
  if (has_kernels(x)) return by_kernels(x, {}, /*relu=*/false);
  if (statistics == BatchStatistics::sync && model.training)
    return SyncBatchNorm::apply(x, weight, bias, *this);
  const bool training = statistics == BatchStatistics::local && model.training;
  return at::batch_norm(x, weight, bias, mean, variance, training, momentum(), kEpsilon,
                        /*cudnn_enabled=*/true);
}

}  // namespace shardmark
