// Each layer is an autograd function whose forward and backward launch the kernels. Matrix products remain
// torch's.
#include "kernels/fused.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kThreads = 256,
                  kRowsAtOnce = kThreads / 32;  // a warp takes a row, or a part of one

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of elements that a thread moves at once: 8 (16 bytes) if all rows are aligned to 16 bytes, else
// 1.
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

// The gradient that the parameter already has, if kernels are to add to it; otherwise undefined.
at::Tensor place_of_gradient(const Kernels& kernels, const at::Tensor& parameter) {
  return kernels->adds_gradients ? parameter.grad() : at::Tensor();
}

// Computes a b as the gradient of `parameter`. Returns it for autograd, or adds it to the parameter's
// gradient and returns an undefined tensor.
at::Tensor product_for(const Kernels& kernels, const at::Tensor& parameter, const at::Tensor& a,
                       const at::Tensor& b) {
  const at::Tensor place = place_of_gradient(kernels, parameter);
  if (!place.defined()) return at::mm(a, b);
  place.addmm_(a, b);
  return {};
}

// Adds up partial sums [parts, C of each parameter] in float to the gradients of the parameters. Returns them
// for autograd, or adds them to the existing gradients and returns undefined tensors, as above. `precise`
// gets the sums in float, if it is defined.
std::vector<at::Tensor> totals_for(const Kernels& kernels, const std::vector<at::Tensor>& parameters,
                                   const at::Tensor& partial, const at::Tensor& precise = {}) {
  std::vector<at::Tensor> places, returned(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    places.push_back(place_of_gradient(kernels, parameters[i]));
    if (!places[i].defined())
      places[i] = returned[i] = at::empty(parameters[i].sizes(), parameters[i].options());
  }
  for (const at::Tensor& one : returned)
    ENSURE(one.defined() == returned.front().defined(),
           "parameters of a layer, some of them without gradients");
  const int64_t columns = partial.size(1);
  (*kernels)({"column_sum.cu", "column_totals", {quotient_up(columns, 32), 1}, 1024}, data(partial),
             data(places.front()), data(places.back()), data(precise), partial.size(0), columns,
             columns / std::ssize(parameters), int64_t{!returned.front().defined()});
  return returned;
}

// The grid of a kernel that sums the columns of x [N, C]: as many parts as the GPU can run blocks at a time.
struct OverColumns {
  OverColumns(const Kernels& kernels, const at::Tensor& x, int64_t vector) {
    const int64_t across = quotient_up(x.size(1), 32 * vector);
    const int64_t parts = std::clamp<int64_t>(kBlocks * kernels->multiprocessors() / across, 1,
                                              quotient_up(x.size(0), kRowsAtOnce));
    blocks = {across, parts};
    partial = at::empty({parts, x.size(1)}, x.options().dtype(at::kFloat));
  }
  static constexpr int64_t kBlocks = 6;  // per multiprocessor
  std::array<int64_t, 2> blocks;
  at::Tensor partial;
};

// Returns dz, and its partial sums.
std::pair<at::Tensor, at::Tensor> gelu_backward(const Kernels& kernels, const at::Tensor& dy,
                                                const at::Tensor& z) {
  const at::Tensor dz = at::empty_like(z);
  const int64_t vector = vector_for(z.size(1), {dy, z, dz});
  const OverColumns over(kernels, z, vector);
  (*kernels)({"column_sum.cu", fmt::format("gelu_backward<{}>", vector), over.blocks, kThreads}, data(dy),
             data(z), data(dz), data(over.partial), z.size(0), z.size(1));
  return {dz, over.partial};
}

// Returns three matrices [N, C / 3] as one, and its partial sums.
std::pair<at::Tensor, at::Tensor> joined_partials(const Kernels& kernels, const variable_list& parts) {
  const at::Tensor a = parts[0].contiguous(), b = parts[1].contiguous(), c = parts[2].contiguous();
  const at::Tensor z = at::empty({a.size(0), 3 * a.size(1)}, a.options());
  const int64_t vector = vector_for(a.size(1), {a, b, c, z});
  const OverColumns over(kernels, z, vector);
  (*kernels)({"column_sum.cu", fmt::format("joined_partials<{}>", vector), over.blocks, kThreads}, data(a),
             data(b), data(c), data(z), data(over.partial), z.size(0), z.size(1));
  return {z, over.partial};
}

// x must be contiguous.
at::Tensor column_partials(const Kernels& kernels, const at::Tensor& x) {
  const int64_t vector = vector_for(x.size(1), {x});
  const OverColumns over(kernels, x, vector);
  (*kernels)({"column_sum.cu", fmt::format("column_partials<{}>", vector), over.blocks, kThreads}, data(x),
             data(over.partial), x.size(0), x.size(1));
  return over.partial;
}

// How a row of a norm is shared by the threads of a block: each has as few packs as 256 threads allow, and
// then no more threads than hold the row with so many.
struct RowOfBlock {
  RowOfBlock(int64_t channels, std::initializer_list<at::Tensor> tensors)
      : vector(vector_for(channels, tensors)),
        packs(quotient_up(channels / vector, kThreads)),
        threads(quotient_up(quotient_up(channels / vector, packs), 32) * 32) {}
  std::string kernel(const char* name, bool centres) const {
    return fmt::format("{}<{}, {}, {}>", name, centres, vector, packs);
  }
  static constexpr int64_t kMostPacks = 4;  // in registers
  int64_t vector, packs, threads;
};

// Layer norm, or RMS norm if it has no bias.
struct FusedNorm : torch::autograd::Function<FusedNorm> {
  // A warp holds shorter rows of layer norm.
  static constexpr int64_t kMostOfWarp = 1024;

  static variable_list forward(AutogradContext* ctx, const at::Tensor& x,
                               const std::optional<at::Tensor>& added, const at::Tensor& weight,
                               const std::optional<at::Tensor>& bias, double epsilon,
                               const Kernels& kernels) {
    const at::Tensor in = x.contiguous(), residual = contiguous(added.value_or(at::Tensor()));
    const int64_t rows = x.size(0), channels = x.size(1);
    const at::Tensor h = added ? at::empty_like(in) : in, y = at::empty_like(in);
    const at::Tensor rstd = at::empty({rows}, x.options().dtype(at::kFloat));
    const at::Tensor mean = bias ? at::empty_like(rstd) : at::Tensor(), shift = bias.value_or(at::Tensor());
    if (rows > 0 && bias && channels <= kMostOfWarp) {
      const int64_t vector = vector_for(channels, {in, residual, weight, shift});
      (*kernels)({"layer_norm.cu",
                  fmt::format("layer_norm_forward<{}, {}>", channels, vector),
                  {quotient_up(rows, kRowsAtOnce), 1},
                  kThreads},
                 data(in), data(residual), data(weight), data(shift), data(h), data(y), data(mean),
                 data(rstd), rows, static_cast<float>(epsilon));
    } else if (rows > 0) {
      const RowOfBlock row(channels, {in, residual, weight, shift});
      (*kernels)({"row_norm.cu", row.kernel("row_norm_forward", bias.has_value()), {rows, 1}, row.threads},
                 data(in), data(residual), data(weight), data(shift), data(h), data(y), data(mean),
                 data(rstd), channels, static_cast<float>(epsilon));
    }
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({h, weight, shift, mean, rstd});
    ctx->saved_data["adds"] = added.has_value();
    keep(ctx, kernels);
    return {added ? h : x.view_as(x), y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    constexpr int64_t kBlocksOfWarps = 2, kBlocksOfRows = 4;  // per multiprocessor
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &h = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3], &rstd = saved[4];
    const Kernels kernels = kept(ctx);
    const at::Tensor elsewhere = contiguous(outputs[0]);
    const at::Tensor dy = outputs[1].defined() ? outputs[1].contiguous() : at::zeros_like(h);
    const at::Tensor dh = at::empty_like(h);
    const int64_t rows = h.size(0), channels = h.size(1);
    const bool by_warps = bias.defined() && channels <= kMostOfWarp;
    const int64_t wanted = by_warps ? quotient_up(rows, kRowsAtOnce) : rows;
    const int64_t blocks = std::clamp<int64_t>(
        wanted, 1, (by_warps ? kBlocksOfWarps : kBlocksOfRows) * kernels->multiprocessors());
    const std::vector<at::Tensor> parameters =
        bias.defined() ? std::vector{weight, bias} : std::vector{weight};
    const at::Tensor partial = at::empty({blocks, std::ssize(parameters) * channels}, rstd.options());
    if (by_warps) {
      const int64_t vector = vector_for(channels, {dy, h, elsewhere, weight});
      (*kernels)({"layer_norm.cu",
                  fmt::format("layer_norm_backward<{}, {}>", channels, vector),
                  {blocks, 1},
                  kThreads},
                 data(dy), data(h), data(elsewhere), data(weight), data(mean), data(rstd), data(dh),
                 data(partial), rows);
    } else {
      const RowOfBlock row(channels, {dy, h, elsewhere, weight});
      (*kernels)({"row_norm.cu", row.kernel("row_norm_backward", bias.defined()), {blocks, 1}, row.threads},
                 data(dy), data(h), data(elsewhere), data(weight), data(mean), data(rstd), data(dh),
                 data(partial), rows, channels);
    }
    const auto of_parameters = totals_for(kernels, parameters, partial);
    const at::Tensor dadded = ctx->saved_data["adds"].toBool() ? dh : at::Tensor();
    return {dh, dadded, of_parameters.front(), bias.defined() ? of_parameters.back() : at::Tensor(), {}, {}};
  }
};

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// Launches a kernel whose last argument is the number of elements: once for all whole packs, and once for the
// elements that remain.
template <class... Tensors>
void over_elements(const Kernels& kernels, const char* text, const std::string& name,
                   const Tensors&... tensors) {
  constexpr int64_t kBlocks = 8;  // per multiprocessor
  const int64_t numel = std::get<0>(std::tie(tensors...)).numel(), vector = vector_for(8, {tensors...});
  const auto launch = [&](int64_t begin, int64_t count, int64_t of_pack) {
    if (count == 0) return;
    const int64_t blocks =
        std::min(quotient_up(count, kThreads * of_pack), kBlocks * kernels->multiprocessors());
    (*kernels)({text, fmt::format("{}<{}>", name, of_pack), {blocks, 1}, kThreads},
               data(tensors.view(-1).narrow(0, begin, count))..., count);
  };
  const int64_t whole = numel / vector * vector;
  launch(0, whole, vector);
  launch(whole, numel - whole, 1);
}

struct FusedSwiglu : torch::autograd::Function<FusedSwiglu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate, const at::Tensor& up,
                            const Kernels& kernels) {
    const at::Tensor g = gate.contiguous(), u = up.contiguous();
    at::Tensor y = at::empty_like(g);
    over_elements(kernels, "swiglu.cu", "swiglu_forward", g, u, y);
    ctx->save_for_backward({g, u});
    keep(ctx, kernels);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &g = saved[0], &u = saved[1], dy = outputs[0].contiguous();
    const at::Tensor dgate = at::empty_like(g), dup = at::empty_like(u);
    over_elements(kept(ctx), "swiglu.cu", "swiglu_backward", dy, g, u, dgate, dup);
    return {dgate, dup, {}};
  }
};

// Launches a kernel with a block for each row of x [M, I], whose last argument is I.
template <class... Tensors>
void with_block_per_row(const Kernels& kernels, const char* text, const char* name, const at::Tensor& x,
                        const at::Tensor& weight, const Tensors&... others) {
  if (x.numel() == 0) return;
  const int64_t columns = x.size(1), vector = vector_for(columns, {x, others...});
  const int64_t threads = std::min(kThreads, quotient_up(columns, 32 * vector) * 32);
  (*kernels)({text, fmt::format("{}<{}>", name, vector), {x.size(0), 1}, threads}, data(weight), data(x),
             data(others)..., columns);
}

at::Tensor turned_by_kernel(const Kernels& kernels, const at::Tensor& x, const variable_list& tables,
                            float direction) {
  const at::Tensor in = x.contiguous();
  at::Tensor y = at::empty_like(in);
  const at::Tensor &cos = tables[0], &sin = tables[1], positions = contiguous(tables[2]);
  const int64_t half = in.size(3) / 2, vector = vector_for(half, {in, cos, sin, y});
  ENSURE(positions.defined() || in.size(1) <= cos.size(0), "more tokens than positions in the tables");
  if (in.numel() == 0) return y;
  (*kernels)({"rotary.cu",
              fmt::format("rotary<{}>", vector),
              {quotient_up(in.numel() / (2 * vector), kThreads), 1},
              kThreads},
             data(in), data(cos), data(sin), data(positions), data(y), in.size(0) * in.size(1), in.size(1),
             in.size(2), half, direction);
  return y;
}

struct FusedRotary : torch::autograd::Function<FusedRotary> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin, const std::optional<at::Tensor>& positions,
                            const Kernels& kernels) {
    const variable_list tables = {cos, sin, positions.value_or(at::Tensor())};
    ctx->save_for_backward(tables);
    keep(ctx, kernels);
    return turned_by_kernel(kernels, x, tables, 1);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    return {turned_by_kernel(kept(ctx), outputs[0], ctx->get_saved_variables(), -1), {}, {}, {}, {}};
  }
};

at::Tensor channels_last(const at::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }

// How the kernels of batch norm share rows [R, C] among threads.
struct OverRows {
  // `other` is read beside x, unless it is undefined.
  OverRows(const Kernels& kernels, const at::Tensor& x, const at::Tensor& other)
      : channels(x.size(1)), rows(x.numel() / channels), vector(vector_for(channels, {x, other})) {
    while (lanes < 32 && lanes * vector < channels) lanes *= 2;
    at_once = kThreads / lanes;
    const int64_t across = quotient_up(channels, lanes * vector);
    const int64_t parts = std::clamp<int64_t>(kBlocks * kernels->multiprocessors() / across, 1,
                                              quotient_up(rows, kLeastRows * at_once));
    blocks = {across, parts};
  }
  KernelLaunch launch(const char* name) const {
    return {"batch_norm.cu", fmt::format("{}<{}>", name, vector), blocks, kThreads};
  }
  at::Tensor partial(const at::Tensor& x) const {
    return at::empty({blocks[1], 2 * channels}, x.options().dtype(at::kFloat));
  }
  // Blocks per multiprocessor, and the fewest rows of a thread, so that partial sums are few beside the rows.
  static constexpr int64_t kBlocks = 6, kLeastRows = 4;
  int64_t channels, rows, vector, at_once;
  int lanes = 1;
  std::array<int64_t, 2> blocks;
};

struct FusedBatchNorm : torch::autograd::Function<FusedBatchNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const std::optional<at::Tensor>& residual, const at::Tensor& weight,
                            const at::Tensor& bias, const RunningStatistics& running, double epsilon,
                            bool relu, const Kernels& kernels) {
    const at::Tensor in = channels_last(x), added = residual ? channels_last(*residual) : at::Tensor();
    const at::Tensor mean = at::empty({x.size(1)}, x.options().dtype(at::kFloat)),
                     rstd = at::empty_like(mean);
    at::Tensor y = at::empty_like(in);
    const OverRows over(kernels, in, added);
    const at::Tensor partial = over.partial(in);
    (*kernels)(over.launch("batch_norm_moments"), data(in), data(partial), over.rows, over.channels,
               over.lanes);
    (*kernels)({"batch_norm.cu", "batch_norm_statistics", {quotient_up(over.channels, 32), 1}, 1024},
               data(partial), data(mean), data(rstd), data(running.mean), data(running.variance),
               over.blocks[1], over.rows, over.channels, over.at_once, static_cast<float>(running.momentum),
               static_cast<float>(epsilon));
    (*kernels)(over.launch("batch_norm_forward"), data(in), data(added), data(weight), data(bias), data(mean),
               data(rstd), data(y), over.rows, over.channels, over.lanes, int{relu});
    ctx->save_for_backward({in, added.defined() ? y : at::Tensor(), weight, bias, mean, rstd});
    ctx->saved_data["relu"] = relu;
    keep(ctx, kernels);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &y = saved[1], &weight = saved[2], &bias = saved[3], &mean = saved[4],
                     &rstd = saved[5];
    const Kernels kernels = kept(ctx);
    const bool relu = ctx->saved_data["relu"].toBool();
    const at::Tensor dy = channels_last(outputs[0]), dx = at::empty_like(x);
    const at::Tensor dresidual = y.defined() ? at::empty_like(x) : at::Tensor();
    const OverRows over(kernels, x, dy);
    const at::Tensor partial = over.partial(x), totals = at::empty({2 * over.channels}, mean.options());
    (*kernels)(over.launch("batch_norm_backward_sums"), data(dy), data(x), data(y), data(weight), data(bias),
               data(mean), data(rstd), data(dresidual), data(partial), over.rows, over.channels, over.lanes,
               int{relu});
    const auto of_parameters = totals_for(kernels, {weight, bias}, partial, totals);
    (*kernels)(over.launch("batch_norm_backward"), data(y.defined() ? dresidual : dy), data(x), data(weight),
               data(bias), data(mean), data(rstd), data(totals), data(dx), over.rows, over.channels,
               over.lanes, int{relu && !y.defined()});
    return {dx, dresidual, of_parameters[0], of_parameters[1], {}, {}, {}, {}};
  }
};

// What follows the product z = x weight + bias.
enum class Then : int64_t { nothing, gelu, three_parts };

struct FusedProjection : torch::autograd::Function<FusedProjection> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& bias, Then then, const Kernels& kernels) {
    const at::Tensor z = at::addmm(bias, x, weight);
    ctx->save_for_backward({x, weight, bias, then == Then::gelu ? z : at::Tensor()});
    ctx->saved_data["then"] = static_cast<int64_t>(then);
    keep(ctx, kernels);
    if (then == Then::three_parts) return z.chunk(3, 1);
    return {then == Then::gelu ? at::gelu(z, "tanh") : z};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &z = saved[3];
    const Kernels kernels = kept(ctx);
    at::Tensor dz, partial;
    switch (static_cast<Then>(ctx->saved_data["then"].toInt())) {
      case Then::nothing:
        partial = column_partials(kernels, dz = outputs[0].contiguous());
        break;
      case Then::gelu:
        std::tie(dz, partial) = gelu_backward(kernels, outputs[0].contiguous(), z);
        break;
      case Then::three_parts:
        std::tie(dz, partial) = joined_partials(kernels, outputs);
        break;
    }
    const at::Tensor dx = ctx->needs_input_grad(0) ? at::mm(dz, weight.t()) : at::Tensor();
    return {dx, product_for(kernels, weight, x.t(), dz), totals_for(kernels, {bias}, partial)[0], {}, {}};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> fused_layer_norm(const Kernels& kernels, const at::Tensor& x,
                                                   const at::Tensor& added, const at::Tensor& weight,
                                                   const at::Tensor& bias, double epsilon) {
  if (RowOfBlock(x.size(1), {weight, bias}).packs > RowOfBlock::kMostPacks) {
    const at::Tensor h = added.defined() ? x + added : x;
    return {h, at::layer_norm(h, weight.sizes(), weight, bias, epsilon)};
  }
  const auto both = FusedNorm::apply(x, if_defined(added), weight, std::optional(bias), epsilon, kernels);
  return {both[0], both[1]};
}

std::pair<at::Tensor, at::Tensor> fused_rms_norm(const Kernels& kernels, const at::Tensor& x,
                                                 const at::Tensor& added, const at::Tensor& weight,
                                                 double epsilon) {
  if (RowOfBlock(x.size(1), {weight}).packs > RowOfBlock::kMostPacks) {
    const at::Tensor h = added.defined() ? x + added : x;
    return {h, at::rms_norm(h, weight.sizes(), weight, epsilon)};
  }
  const auto both = FusedNorm::apply(x, if_defined(added), weight, std::nullopt, epsilon, kernels);
  return {both[0], both[1]};
}

at::Tensor fused_swiglu(const Kernels& kernels, const at::Tensor& gate, const at::Tensor& up) {
  return FusedSwiglu::apply(gate, up, kernels);
}

at::Tensor fused_weighted_swiglu(const Kernels& kernels, const at::Tensor& gate, const at::Tensor& up,
                                 const at::Tensor& weight) {
  const at::Tensor g = gate.contiguous(), u = up.contiguous();
  at::Tensor y = at::empty_like(g);
  with_block_per_row(kernels, "swiglu.cu", "weighted_swiglu_forward", g, weight.contiguous(), u, y);
  return y;
}

WeightedSwiglu fused_weighted_swiglu_backward(const Kernels& kernels, const at::Tensor& dy,
                                              const at::Tensor& gate, const at::Tensor& up,
                                              const at::Tensor& weight) {
  const at::Tensor g = gate.contiguous(), u = up.contiguous(), dgate = dy.contiguous();
  WeightedSwiglu of{at::empty_like(g), dgate, at::empty_like(u), at::empty({g.size(0)}, g.options())};
  with_block_per_row(kernels, "swiglu.cu", "weighted_swiglu_backward", g, weight.contiguous(), u, dgate, of.y,
                     of.dup, of.dweight);
  return of;
}

at::Tensor fused_rotary(const Kernels& kernels, const at::Tensor& x, const at::Tensor& cos,
                        const at::Tensor& sin, const at::Tensor& positions) {
  return FusedRotary::apply(x, cos, sin, if_defined(positions), kernels);
}

at::Tensor fused_batch_norm(const Kernels& kernels, const at::Tensor& x, const at::Tensor& residual,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const RunningStatistics& running, double epsilon, bool relu) {
  ENSURE(relu || !residual.defined(), "a residual is added in front of ReLU");
  return FusedBatchNorm::apply(x, if_defined(residual), weight, bias, running, epsilon, relu, kernels);
}

at::Tensor column_sum(const Kernels& kernels, const at::Tensor& x) {
  const at::Tensor in = x.contiguous(), partial = column_partials(kernels, in);
  return totals_for(kernels, {in.select(0, 0)}, partial)[0];
}

at::Tensor fused_projection(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
  return FusedProjection::apply(x, weight, bias, Then::nothing, kernels)[0];
}

at::Tensor fused_projection_gelu(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias) {
  return FusedProjection::apply(x, weight, bias, Then::gelu, kernels)[0];
}

std::vector<at::Tensor> fused_projection_in_three(const Kernels& kernels, const at::Tensor& x,
                                                  const at::Tensor& weight, const at::Tensor& bias) {
  return FusedProjection::apply(x, weight, bias, Then::three_parts, kernels);
}

at::Tensor softmax_cross_entropy(const Kernels& kernels, const at::Tensor& logits, const at::Tensor& targets,
                                 int64_t classes) {
  constexpr int64_t kMostPacks = 8;
  const int64_t stride = logits.stride(0), vector = vector_for(stride, {logits});
  const int64_t threads = std::clamp<int64_t>(quotient_up(stride, 32 * vector) * 32, 32, 1024);
  const int64_t packs = std::min(quotient_up(stride, threads * vector), kMostPacks);
  at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  const at::Tensor classes_of_rows = contiguous(targets);
  (*kernels)({"cross_entropy.cu",
              fmt::format("softmax_cross_entropy<{}, {}>", vector, packs),
              {logits.size(0), 1},
              threads},
             data(logits), data(classes_of_rows), data(losses), static_cast<int>(classes),
             static_cast<int>(stride));
  return losses;
}

at::Tensor softmax_in_place(const Kernels& kernels, const at::Tensor& logits, int64_t classes) {
  return softmax_cross_entropy(kernels, logits, {}, classes);
}

// Elements at the end that do not fill a pack are updated by a launch of their own.
void fused_adamw(const Kernels& kernels, const AdamWMemory& memory, const AdamWRates& rates,
                 const at::Tensor& num_updates, const at::Tensor& divisor) {
  constexpr int64_t kBlocks = 8;  // per multiprocessor
  const auto& [p, g, m, v, copy] = memory;
  const int64_t vector = vector_for(8, {p, g, m, v, copy}), whole = p.numel() / vector * vector;
  const auto update = [&](int64_t begin, int64_t numel, int64_t of_pack) {
    if (numel == 0) return;
    const auto from = [&](const at::Tensor& tensor) { return data(tensor.narrow(0, begin, numel)); };
    const int64_t blocks =
        std::min(quotient_up(numel, kThreads * of_pack), kBlocks * kernels->multiprocessors());
    (*kernels)({"adamw.cu", fmt::format("adamw<{}>", of_pack), {blocks, 1}, kThreads}, from(p), from(g),
               from(m), from(v), from(copy), data(num_updates), data(divisor), numel, rates.beta1,
               rates.beta2, static_cast<float>(rates.lr), static_cast<float>(rates.weight_decay),
               static_cast<float>(rates.epsilon));
  };
  update(0, whole, vector);
  update(whole, p.numel() - whole, 1);
}

}  // namespace shardmark
