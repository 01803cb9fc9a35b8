// Each layer as an autograd function: forward and backward launch the kernels, products stay torch's.
#include "kernels/fused.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kThreads = 256,
                  kRowsAtOnce = kThreads / 32;  // of a block: a row, or a part of one, to a warp
constexpr int64_t kMostChannels = 1600;         // of a row that a warp holds in registers

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Elements that a thread moves at once: 16 bytes where all rows are aligned to them.
int64_t vector_for(int64_t columns, std::initializer_list<at::Tensor> tensors) {
  const bool aligned = std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return !tensor.defined() || reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 16 == 0;
  });
  return aligned && columns % 8 == 0 ? 8 : 1;
}

void* data(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }
at::Tensor contiguous(const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

void keep(AutogradContext* ctx, const Kernels& kernels) {
  ctx->saved_data["kernels"] = at::IValue::make_capsule(kernels);
}
Kernels kept(AutogradContext* ctx) {
  return c10::static_intrusive_pointer_cast<KernelLauncher>(ctx->saved_data["kernels"].toCapsule());
}

// Of partial sums [parts, C] in float: [C] in bf16.
at::Tensor totals(const Kernels& kernels, const at::Tensor& partial) {
  const int64_t columns = partial.size(1);
  at::Tensor total = at::empty({columns}, partial.options().dtype(at::kBFloat16));
  (*kernels)({"column_sum.cu", "column_totals", {quotient_up(columns, 32), 1}, 1024}, data(partial),
             data(total), partial.size(0), columns);
  return total;
}

// A kernel over x [N, C] that adds up columns: as many parts as the GPU runs blocks at a time.
struct OverColumns {
  OverColumns(const Kernels& kernels, const at::Tensor& x, int64_t vector) {
    const int64_t across = quotient_up(x.size(1), 32 * vector);
    const int64_t parts =
        std::clamp<int64_t>(4 * kernels->multiprocessors() / across, 1, quotient_up(x.size(0), kRowsAtOnce));
    blocks = {across, parts};
    partial = at::empty({parts, x.size(1)}, x.options().dtype(at::kFloat));
  }
  std::array<int64_t, 2> blocks;
  at::Tensor partial;
};

// dz and the gradient of the bias in z = ... + bias.
std::pair<at::Tensor, at::Tensor> gelu_backward(const Kernels& kernels, const at::Tensor& dy,
                                                const at::Tensor& z) {
  const at::Tensor dz = at::empty_like(z);
  const int64_t vector = vector_for(z.size(1), {dy, z, dz});
  const OverColumns over(kernels, z, vector);
  (*kernels)({"column_sum.cu", fmt::format("gelu_backward<{}>", vector), over.blocks, kThreads}, data(dy),
             data(z), data(dz), data(over.partial), z.size(0), z.size(1));
  return {dz, totals(kernels, over.partial)};
}

struct FusedLayerNorm : torch::autograd::Function<FusedLayerNorm> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x,
                               const std::optional<at::Tensor>& added, const at::Tensor& weight,
                               const at::Tensor& bias, double epsilon, const Kernels& kernels) {
    const at::Tensor in = x.contiguous(), residual = contiguous(added.value_or(at::Tensor()));
    const int64_t rows = x.size(0), channels = x.size(1);
    const at::Tensor h = added ? at::empty_like(in) : in, y = at::empty_like(in);
    const at::Tensor mean = at::empty({rows}, x.options().dtype(at::kFloat)), rstd = at::empty_like(mean);
    const int64_t vector = vector_for(channels, {in, residual, weight, bias});
    (*kernels)({"layer_norm.cu",
                fmt::format("layer_norm_forward<{}, {}>", channels, vector),
                {quotient_up(rows, kRowsAtOnce), 1},
                kThreads},
               data(in), data(residual), data(weight), data(bias), data(h), data(y), data(mean), data(rstd),
               rows, static_cast<float>(epsilon));
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({h, weight, mean, rstd});
    ctx->saved_data["adds"] = added.has_value();
    keep(ctx, kernels);
    return {added ? h : x.view_as(x), y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &h = saved[0], &weight = saved[1], &mean = saved[2], &rstd = saved[3];
    const Kernels kernels = kept(ctx);
    const at::Tensor elsewhere = contiguous(outputs[0]);
    const at::Tensor dy = outputs[1].defined() ? outputs[1].contiguous() : at::zeros_like(h);
    const at::Tensor dh = at::empty_like(h);
    const int64_t rows = h.size(0), channels = h.size(1);
    const int64_t blocks = std::min(quotient_up(rows, kRowsAtOnce), 2 * kernels->multiprocessors());
    const at::Tensor partial = at::empty({blocks, 2 * channels}, mean.options());
    const int64_t vector = vector_for(channels, {dy, h, elsewhere, weight});
    (*kernels)({"layer_norm.cu",
                fmt::format("layer_norm_backward<{}, {}>", channels, vector),
                {blocks, 1},
                kThreads},
               data(dy), data(h), data(elsewhere), data(weight), data(mean), data(rstd), data(dh),
               data(partial), rows);
    const at::Tensor of_both = totals(kernels, partial).view({2, channels});
    return {dh, ctx->saved_data["adds"].toBool() ? dh : at::Tensor(), of_both[0], of_both[1], {}, {}};
  }
};

// z = x weight + bias, and GELU of it where `gelu` is set.
struct FusedProjection : torch::autograd::Function<FusedProjection> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, bool gelu, const Kernels& kernels) {
    const at::Tensor z = at::addmm(bias, x, weight);
    if (gelu)
      ctx->save_for_backward({x, weight, z});
    else
      ctx->save_for_backward({x, weight});
    keep(ctx, kernels);
    return gelu ? at::gelu(z, "tanh") : z;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const Kernels kernels = kept(ctx);
    at::Tensor dz = outputs[0].contiguous(), dbias;
    if (saved.size() > 2)
      std::tie(dz, dbias) = gelu_backward(kernels, dz, saved[2]);
    else
      dbias = column_sum(kernels, dz);
    const at::Tensor dx = ctx->needs_input_grad(0) ? at::mm(dz, saved[1].t()) : at::Tensor();
    return {dx, at::mm(saved[0].t(), dz), dbias, {}, {}};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> fused_layer_norm(const Kernels& kernels, const at::Tensor& x,
                                                   const at::Tensor& added, const at::Tensor& weight,
                                                   const at::Tensor& bias, double epsilon) {
  if (x.size(1) > kMostChannels) {
    const at::Tensor h = added.defined() ? x + added : x;
    return {h, at::layer_norm(h, weight.sizes(), weight, bias, epsilon)};
  }
  const auto both = FusedLayerNorm::apply(x, added.defined() ? std::optional(added) : std::nullopt, weight,
                                          bias, epsilon, kernels);
  return {both[0], both[1]};
}

at::Tensor column_sum(const Kernels& kernels, const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  const int64_t vector = vector_for(x.size(1), {in});
  const OverColumns over(kernels, in, vector);
  (*kernels)({"column_sum.cu", fmt::format("column_partials<{}>", vector), over.blocks, kThreads}, data(in),
             data(over.partial), in.size(0), in.size(1));
  return totals(kernels, over.partial);
}

at::Tensor fused_projection(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
  return FusedProjection::apply(x, weight, bias, /*gelu=*/false, kernels);
}

at::Tensor fused_projection_gelu(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias) {
  return FusedProjection::apply(x, weight, bias, /*gelu=*/true, kernels);
}

at::Tensor softmax_cross_entropy(const Kernels& kernels, const at::Tensor& logits, const at::Tensor& targets,
                                 int64_t classes) {
  at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  const at::Tensor classes_of_rows = targets.contiguous();
  const int64_t vector = vector_for(logits.stride(0), {logits});
  (*kernels)({"cross_entropy.cu",
              fmt::format("softmax_cross_entropy<{}>", vector),
              {logits.size(0), 1},
              std::clamp<int64_t>(quotient_up(classes, 32 * vector) * 32, 32, 1024)},
             data(logits), data(classes_of_rows), data(losses), classes, logits.stride(0));
  return losses;
}

}  // namespace shardmark
