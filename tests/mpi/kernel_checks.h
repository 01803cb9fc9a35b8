// Compares fused layers with the same formulas in fp64. Used on the CPU with an emulated GPU, and on a GPU.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/fused.h"
#include "models/model.h"

namespace shardmark {

// The operands and results of a layer: on a device in bf16, and the same numbers in fp64 on the CPU.
struct BothTypes {
  at::Tensor rounded, exact;
  BothTypes(at::IntArrayRef shape, at::Device device, double spread = 1, double offset = 0)
      : rounded((at::randn(shape, at::kDouble) * spread + offset).to(device, at::kBFloat16)),
        exact(rounded.to(at::kCPU, at::kDouble, false, /*copy=*/true)) {
    rounded.set_requires_grad(true);
    exact.set_requires_grad(true);
  }
};

// Expects every element to be within `roundings` bf16 roundings, relative to its size plus the mean size of
// the tensor.
inline void expect_rounded(const std::string& what, const at::Tensor& measured, const at::Tensor& exact,
                           double roundings) {
  ASSERT_TRUE(measured.defined()) << what;
  const at::Tensor expected = exact.detach();
  const at::Tensor error = (measured.detach().to(at::kCPU, at::kDouble) - expected).abs();
  const at::Tensor size = expected.abs() + expected.abs().mean();
  EXPECT_LE((error / size).max().item<double>(), roundings * 0x1p-8) << what;
}

inline void check_layer_norm(const Kernels& kernels, at::Device device, int64_t rows, int64_t channels,
                             bool adds) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels) + (adds ? ", added" : ""));
  const BothTypes x({rows, channels}, device, 2, 0.5), added({rows, channels}, device);
  const BothTypes weight({channels}, device), bias({channels}, device);
  const BothTypes dy({rows, channels}, device), dh({rows, channels}, device);
  const auto [h, y] = fused_layer_norm(kernels, x.rounded, adds ? added.rounded : at::Tensor(),
                                       weight.rounded, bias.rounded, 1e-5);
  torch::autograd::backward({h, y}, {dh.rounded.detach(), dy.rounded.detach()});

  const at::Tensor sum = adds ? x.exact + added.exact : x.exact;
  expect_rounded("h", h, sum, 1);
  // The rounded sum is normalized, and its gradient is that of the sum.
  const at::Tensor in = h.detach().to(at::kCPU, at::kDouble, false, /*copy=*/true).set_requires_grad(true);
  const at::Tensor normed = at::layer_norm(in, {channels}, weight.exact, bias.exact, 1e-5);
  torch::autograd::backward({in * 1, normed}, {dh.exact.detach(), dy.exact.detach()});
  expect_rounded("y", y, normed, 1.01);
  // A row that is too long for the kernel uses autograd, which adds two rounded gradients.
  const double roundings = channels > kMostChannels ? 3 : 1.01;
  expect_rounded("dx", x.rounded.grad(), in.grad(), roundings);
  if (adds) expect_rounded("dadded", added.rounded.grad(), in.grad(), roundings);
  expect_rounded("dweight", weight.rounded.grad(), weight.exact.grad(), 1.01);
  expect_rounded("dbias", bias.rounded.grad(), bias.exact.grad(), 1.01);
}

inline void check_rms_norm(const Kernels& kernels, at::Device device, int64_t rows, int64_t channels,
                           bool adds) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels) + (adds ? ", added" : ""));
  const BothTypes x({rows, channels}, device, 2, 0.5), added({rows, channels}, device);
  const BothTypes weight({channels}, device), dy({rows, channels}, device), dh({rows, channels}, device);
  const auto [h, y] =
      fused_rms_norm(kernels, x.rounded, adds ? added.rounded : at::Tensor(), weight.rounded, 1e-5);
  torch::autograd::backward({h, y}, {dh.rounded.detach(), dy.rounded.detach()});

  expect_rounded("h", h, adds ? x.exact + added.exact : x.exact, 1);
  // The rounded sum is normalized, and its gradient is that of the sum.
  const at::Tensor in = h.detach().to(at::kCPU, at::kDouble, false, /*copy=*/true).set_requires_grad(true);
  const at::Tensor normed = in * (in.square().mean(1, true) + 1e-5).rsqrt() * weight.exact;
  torch::autograd::backward({in * 1, normed}, {dh.exact.detach(), dy.exact.detach()});
  expect_rounded("y", y, normed, 1.01);
  expect_rounded("dx", x.rounded.grad(), in.grad(), 1.01);
  if (adds) expect_rounded("dadded", added.rounded.grad(), in.grad(), 1.01);
  expect_rounded("dweight", weight.rounded.grad(), weight.exact.grad(), 1.01);
}

// Expects as above, of [rows, C], relative to the sizes in the channel: channels may have different scales.
inline void expect_rounded_by_channel(const std::string& what, const at::Tensor& measured,
                                      const at::Tensor& exact, double roundings) {
  ASSERT_TRUE(measured.defined()) << what;
  const at::Tensor expected = exact.detach();
  const at::Tensor error = (measured.detach().to(at::kCPU, at::kDouble) - expected).abs();
  const at::Tensor size = expected.abs() + expected.abs().mean(0, /*keepdim=*/true) + 1e-30;
  EXPECT_LE((error / size).max().item<double>(), roundings * 0x1p-8) << what;
}

struct BatchNormCase {
  int64_t samples, channels, pixels;
  bool adds, relu;
  double spread = 1, offset = 0;  // of x
  bool recomputes = false;
};
// The first channel is constant.
inline void check_batch_norm(const Kernels& kernels, at::Device device, const BatchNormCase& c) {
  SCOPED_TRACE(std::to_string(c.samples) + " x " + std::to_string(c.channels) + " x " +
               std::to_string(c.pixels) + (c.adds ? ", added" : "") + (c.relu ? ", ReLU" : "") + ", offset " +
               std::to_string(c.offset));
  constexpr double kEpsilon = 1e-5, kMomentum = 0.1;
  const std::vector<int64_t> shape = {c.samples, c.pixels, 1, c.channels};
  const BothTypes x(shape, device, c.spread, c.offset), added(shape, device), dy(shape, device);
  const BothTypes weight({c.channels}, device), bias({c.channels}, device);
  for (const at::Tensor& values : {x.rounded, x.exact}) values.detach().select(3, 0).fill_(c.offset);
  const BothTypes mean({c.channels}, device), variance({c.channels}, device);
  const RunningStatistics running{mean.rounded.detach().clone(), variance.rounded.detach().clone(),
                                  c.recomputes ? 0 : kMomentum};
  const auto image = [](const at::Tensor& rows) { return rows.permute({0, 3, 1, 2}); };
  const at::Tensor y =
      fused_batch_norm(kernels, image(x.rounded), c.adds ? image(added.rounded) : at::Tensor(),
                       weight.rounded, bias.rounded, running, kEpsilon, c.relu);
  EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
  y.backward(image(dy.rounded.detach()));

  const auto by_rows = [&](const at::Tensor& values) { return values.reshape({-1, c.channels}); };
  const at::Tensor in = by_rows(x.exact), m = in.mean(0), v = (in - m).square().mean(0);
  at::Tensor expected = (in - m) * (v + kEpsilon).rsqrt() * weight.exact + bias.exact;
  if (c.adds) expected = expected + by_rows(added.exact);
  // Where rounding decides the sign, backward goes by the output.
  const at::Tensor measured = by_rows(y.detach().to(at::kCPU, at::kDouble).permute({0, 2, 3, 1}));
  const at::Tensor passes = c.relu ? measured > 0 : at::ones_like(measured, at::kBool);
  (expected * passes).backward(by_rows(dy.exact).detach());
  expect_rounded_by_channel("y", measured, c.relu ? expected.relu() : expected, 1.01);
  expect_rounded_by_channel("dx", by_rows(x.rounded.grad()), by_rows(x.exact.grad()), 1.01);
  if (c.adds) {
    const at::Tensor dadded = added.rounded.grad().to(at::kCPU, at::kDouble);
    EXPECT_TRUE(dadded.equal(added.exact.grad())) << "the residual's gradient is not rounded again";
  }
  expect_rounded("dweight", weight.rounded.grad(), weight.exact.grad(), 1.01);
  expect_rounded("dbias", bias.rounded.grad(), bias.exact.grad(), 1.01);
  const double rows = static_cast<double>(in.size(0)), momentum = running.momentum;
  expect_rounded("running mean", running.mean, mean.exact.lerp(m, momentum), 1.01);
  expect_rounded("running variance", running.variance, variance.exact.lerp(v * rows / (rows - 1), momentum),
                 1.01);
  if (c.recomputes) {
    EXPECT_TRUE(running.mean.equal(mean.rounded) && running.variance.equal(variance.rounded));
  }
}

inline void check_swiglu(const Kernels& kernels, at::Device device, int64_t rows, int64_t columns) {
  SCOPED_TRACE(columns);
  const BothTypes gate({rows, columns}, device, 3), up({rows, columns}, device), dy({rows, columns}, device);
  const at::Tensor y = fused_swiglu(kernels, gate.rounded, up.rounded);
  y.backward(dy.rounded.detach());
  const at::Tensor expected = at::silu(gate.exact) * up.exact;
  expected.backward(dy.exact.detach());
  expect_rounded("y", y, expected, 1.01);
  expect_rounded("dgate", gate.rounded.grad(), gate.exact.grad(), 1.01);
  expect_rounded("dup", up.rounded.grad(), up.exact.grad(), 1.01);
}

// As routed experts use it: backward computes the rows once more.
inline void check_weighted_swiglu(const Kernels& kernels, at::Device device, int64_t rows, int64_t columns) {
  SCOPED_TRACE(columns);
  const BothTypes gate({rows, columns}, device, 3), up({rows, columns}, device), dy({rows, columns}, device),
      weight({rows, 1}, device);
  const at::Tensor g = gate.rounded.detach(), u = up.rounded.detach(), r = weight.rounded.detach();
  const at::Tensor y = fused_weighted_swiglu(kernels, g, u, r);
  const WeightedSwiglu of = fused_weighted_swiglu_backward(kernels, dy.rounded.detach().clone(), g, u, r);
  const at::Tensor expected = weight.exact * at::silu(gate.exact) * up.exact;
  expected.backward(dy.exact.detach());
  expect_rounded("y", y, expected, 1.01);
  EXPECT_TRUE(of.y.equal(y));
  expect_rounded("dgate", of.dgate, gate.exact.grad(), 1.01);
  expect_rounded("dup", of.dup, up.exact.grad(), 1.01);
  expect_rounded("dweight", of.dweight.unsqueeze(1), weight.exact.grad(), 1.01);
}

// width: of a head.
inline void check_rotary(const Kernels& kernels, at::Device device, int64_t width, bool has_positions) {
  SCOPED_TRACE(std::to_string(width) + (has_positions ? ", positions" : ""));
  constexpr int64_t kSamples = 2, kTokens = 5, kHeads = 3, kPositions = 9;
  const BothTypes x({kSamples, kTokens, kHeads, width}, device), dy(x.exact.sizes(), device);
  const BothTypes angles({kPositions, 1, width / 2}, device, 3);
  const auto table = [&](const at::Tensor& exact) {
    const at::Tensor rounded = exact.detach().to(device, at::kBFloat16);
    return std::pair(rounded, rounded.to(at::kCPU, at::kDouble));
  };
  const auto [cos, exact_cos] = table(angles.exact.cos());
  const auto [sin, exact_sin] = table(angles.exact.sin());
  const at::Tensor positions = at::randint(kPositions, {kSamples, kTokens}, at::kLong);
  const at::Tensor y =
      fused_rotary(kernels, x.rounded, cos, sin, has_positions ? positions.to(device) : at::Tensor());
  y.backward(dy.rounded.detach());

  const at::Tensor of_tokens = has_positions ? positions : at::arange(kTokens).expand({kSamples, kTokens});
  const at::Tensor c = exact_cos.index({of_tokens}), s = exact_sin.index({of_tokens});
  const at::Tensor a = x.exact.narrow(3, 0, width / 2), b = x.exact.narrow(3, width / 2, width / 2);
  const at::Tensor expected = at::cat({a * c - b * s, b * c + a * s}, 3);
  expected.backward(dy.exact.detach());
  expect_rounded("y", y, expected, 1.01);
  expect_rounded("dx", x.rounded.grad(), x.exact.grad(), 1.01);
}

inline void check_projection(const Kernels& kernels, at::Device device, int64_t rows, int64_t columns,
                             bool gelu) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + (gelu ? ", GELU" : ""));
  const int64_t in = 24;
  const BothTypes x({rows, in}, device), weight({in, columns}, device, 0.3), bias({columns}, device);
  const BothTypes dy({rows, columns}, device);
  const auto layer = gelu ? fused_projection_gelu : fused_projection;
  const at::Tensor y = layer(kernels, x.rounded, weight.rounded, bias.rounded);
  y.backward(dy.rounded.detach());

  // GELU is applied to the rounded product, and backward rounds the gradient of that product.
  const at::Tensor z = at::addmm(bias.exact, x.exact, weight.exact);
  const at::Tensor near =
      at::addmm(bias.rounded, x.rounded, weight.rounded).to(at::kCPU, at::kDouble).detach();
  const at::Tensor at_near = near.clone().set_requires_grad(true);
  const at::Tensor value = gelu ? at::gelu(at_near, "tanh") : at_near * 1;
  value.backward(dy.exact.detach());
  expect_rounded("y", y, value, 1.01);
  z.backward(at_near.grad());
  expect_rounded("dx", x.rounded.grad(), x.exact.grad(), 4);
  expect_rounded("dweight", weight.rounded.grad(), weight.exact.grad(), 4);
  expect_rounded("dbias", bias.rounded.grad(), bias.exact.grad(), 4);
}

// The parts and all gradients have the bits of the product that is not divided. A part's gradient may lie in
// memory with gaps.
inline void check_projection_in_three(const Kernels& kernels, at::Device device, int64_t rows,
                                      int64_t columns) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
  const at::Tensor dy = at::randn({rows, columns}).to(device, at::kBFloat16);
  const std::vector<at::Tensor> values = {at::randn({rows, 24}), at::randn({24, columns}),
                                          at::randn({columns})};
  const auto results = [&](bool in_three) {
    std::vector<at::Tensor> leaves, outputs;
    for (const at::Tensor& one : values)
      leaves.push_back(one.to(device, at::kBFloat16).set_requires_grad(true));
    std::vector<at::Tensor> gradients = {dy};
    if (in_three) {
      outputs = fused_projection_in_three(kernels, leaves[0], leaves[1], leaves[2]);
      gradients = dy.chunk(3, 1);
      gradients[1] = gradients[1].contiguous();
    } else {
      outputs = {fused_projection(kernels, leaves[0], leaves[1], leaves[2])};
    }
    std::vector<at::Tensor> all = torch::autograd::grad(outputs, leaves, gradients);
    all.push_back(at::cat(outputs, 1).detach());
    return all;
  };
  const std::vector<at::Tensor> whole = results(false), parts = results(true);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(parts[i].equal(whole[i])) << i;
}

// The targets have different likelihoods: near 1 in every third row, near 0 in every other third row.
inline void check_cross_entropy(const Kernels& kernels, at::Device device, int64_t rows, int64_t classes,
                                int64_t stride) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(classes) + " of " + std::to_string(stride));
  const at::Tensor targets = at::randint(classes, {rows}, at::kLong);
  at::Tensor wanted = at::randn({rows, classes}, at::kDouble);
  for (int64_t row = 0; row < rows; ++row)
    wanted[row][targets[row]] += row % 3 == 0 ? 12 : row % 3 == 1 ? -60 : 0;
  const at::Tensor logits = at::zeros({rows, stride}, at::TensorOptions(device).dtype(at::kBFloat16));
  logits.narrow(1, 0, classes).copy_(wanted);
  const at::Tensor exact = logits.narrow(1, 0, classes).to(at::kCPU, at::kDouble, false, /*copy=*/true);
  const at::Tensor losses = softmax_cross_entropy(kernels, logits, targets.to(device), classes);

  const at::Tensor p = at::softmax(exact, 1), column = targets.unsqueeze(1);
  const at::Tensor others = at::scatter(p, 1, column, 0.0);
  const at::Tensor gradient = at::scatter(p, 1, column, -others.sum(1, true));
  const at::Tensor expected = at::where(p.gather(1, column).squeeze(1) > 0.5, -at::log1p(-others.sum(1)),
                                        -at::log_softmax(exact, 1).gather(1, column).squeeze(1));
  const at::Tensor measured = logits.narrow(1, 0, classes).to(at::kCPU, at::kDouble);
  EXPECT_LE(((measured - gradient).abs() / (gradient.abs() + 1e-30)).max().item<double>(), 1.01 * 0x1p-8);
  EXPECT_LE(((losses.to(at::kCPU, at::kDouble) - expected).abs() / expected).max().item<double>(), 1e-5);
  EXPECT_EQ(logits.narrow(1, classes, stride - classes).abs().sum().item<double>(), 0);
}

// Compares three updates, which start with moments of zero, with the formula in fp64.
// Softmax of a part of the classes needs no targets. Padding becomes 0, whatever it was.
inline void check_softmax(const Kernels& kernels, at::Device device, int64_t rows, int64_t classes,
                          int64_t stride) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(classes) + " of " + std::to_string(stride));
  const at::Tensor logits = at::randn({rows, stride}).mul_(4).to(device, at::kBFloat16);
  const at::Tensor exact = logits.narrow(1, 0, classes).to(at::kCPU, at::kDouble);
  const at::Tensor log_sums = softmax_in_place(kernels, logits, classes).to(at::kCPU, at::kDouble);
  EXPECT_LE((log_sums - at::logsumexp(exact, 1)).abs().max().item<double>(), 1e-5);
  expect_rounded("p", logits.narrow(1, 0, classes), exact.softmax(1), 1.01);
  EXPECT_TRUE(logits.narrow(1, classes, stride - classes).eq(0).all().item<bool>());
}

inline void check_adamw(const Kernels& kernels, at::Device device, int64_t numel, bool divides) {
  SCOPED_TRACE(std::to_string(numel) + (divides ? ", divided" : ""));
  const AdamWRates rates{1e-2, 0.9, 0.999, 1e-8, 0.1};
  const auto floats = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor p = at::randn({numel}, at::kFloat).to(device), m = at::zeros({numel}, floats),
                   v = at::zeros({numel}, floats), num_updates = at::zeros({}, floats),
                   copy = at::full({numel}, 7, floats.dtype(at::kBFloat16));
  const at::Tensor divisor = divides ? at::full({}, 4, floats) : at::Tensor();
  at::Tensor weight = p.to(at::kCPU, at::kDouble), first = at::zeros_like(weight), second = first.clone();
  for (int t = 1; t <= 3; ++t) {
    const at::Tensor g = at::randn({numel}, at::kFloat).to(device, at::kBFloat16);
    const at::Tensor slope = g.to(at::kCPU, at::kDouble) / (divides ? 4 : 1);
    first = rates.beta1 * first + (1 - rates.beta1) * slope;
    second = rates.beta2 * second + (1 - rates.beta2) * slope * slope;
    const at::Tensor root = (second / (1 - std::pow(rates.beta2, t))).sqrt() + rates.epsilon;
    weight =
        weight - rates.lr * (rates.weight_decay * weight + first / (1 - std::pow(rates.beta1, t)) / root);
    num_updates.add_(1);
    fused_adamw(kernels, {p, g, m, v, copy}, rates, num_updates, divisor);
    EXPECT_TRUE(at::equal(g, at::zeros_like(g)));
  }
  EXPECT_TRUE(at::allclose(p.to(at::kCPU, at::kDouble), weight, 1e-6, 1e-6));
  EXPECT_TRUE(at::allclose(m.to(at::kCPU, at::kDouble), first, 1e-5, 1e-7));
  EXPECT_TRUE(at::allclose(v.to(at::kCPU, at::kDouble), second, 1e-5, 1e-9));
  EXPECT_TRUE(at::equal(copy, p.to(at::kBFloat16)));
}

// Codes and scales are those of torch's operations, bit for bit, whatever lines are wanted. There are rows
// and columns of zeros, numbers far below the others and large ones, and a row whose scales of blocks would
// be below the least that 8 bits hold.
inline void check_fp8(const Kernels& kernels, at::Device device, int64_t rows, int64_t columns) {
  const at::Tensor x = at::randn({rows, columns}, at::kDouble);
  x.mul_(at::exp2(at::randint(-14, 8, {rows, columns}, at::kDouble)));
  x[0].zero_();
  x.select(1, 1).zero_();
  x[3][2] = 3e4;
  x[5].mul_(0x1p-120);
  const at::Tensor in = x.to(device, at::kBFloat16);
  const auto bits = [](const at::Tensor& codes) { return codes.contiguous().view(at::kByte).cpu(); };
  for (const Fp8::Scaling scaling : {Fp8::Scaling::tensor, Fp8::Scaling::row, Fp8::Scaling::block})
    for (const at::ScalarType type : {at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
      const Fp8 plain{scaling, type, {}}, with_kernels{scaling, type, kernels};
      const LargestMagnitudes largest = fp8_largest(plain, in), found = fp8_largest(with_kernels, in);
      if (scaling != Fp8::Scaling::block) {
        EXPECT_TRUE(found.of_rows.equal(largest.of_rows) && found.of_columns.equal(largest.of_columns));
      }
      const Fp8Matrix expected = fp8_matrix(plain, in, Holds::gradients, {true, true}, largest);
      for (const WantedLines wanted : {WantedLines{true, true}, {true, false}, {false, true}}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + " " + at::toString(type) +
                     (wanted.rows ? " rows" : "") + (wanted.columns ? " columns" : ""));
        const Fp8Matrix measured = fp8_matrix(with_kernels, in, Holds::gradients, wanted, found);
        for (const auto& [is_wanted, one, other] :
             {std::tuple(wanted.rows, measured.rows.lines, expected.rows.lines),
              {wanted.columns, measured.columns.lines, expected.columns.lines}}) {
          EXPECT_EQ(one.codes.defined(), is_wanted);
          if (!is_wanted) continue;
          EXPECT_TRUE(bits(one.codes).equal(bits(other.codes)));
          EXPECT_TRUE(one.scale.equal(other.scale));
        }
      }
    }
  const at::Tensor unknown = at::full({32, 32}, NAN, in.options());
  for (const Fp8::Scaling scaling : {Fp8::Scaling::tensor, Fp8::Scaling::block}) {
    const Fp8 fp8{scaling, at::kFloat8_e5m2, kernels};
    const Fp8Matrix of_unknown =
        fp8_matrix(fp8, unknown, Holds::values, {true, true}, fp8_largest(fp8, unknown));
    EXPECT_TRUE(of_unknown.rows.lines.codes.to(at::kFloat).isnan().all().item<bool>());
    EXPECT_TRUE(of_unknown.columns.lines.codes.to(at::kFloat).isnan().all().item<bool>());
  }
}

// Products that the device computes in 8 bits equal those of the rounded numbers in float, as near as bf16
// rounds them, for all factors that layers have.
inline void check_fp8_products(const Fp8& fp8, at::Device device) {
  SCOPED_TRACE(std::string(at::toString(fp8.gradients)) + ", scaling " +
               std::to_string(static_cast<int>(fp8.scaling)));
  const at::Tensor a = at::randn({48, 64}).to(device, at::kBFloat16),
                   b = at::randn({64, 32}).mul_(7).to(device, at::kBFloat16);
  const auto factors = [&](const at::Tensor& x, Holds holds) {
    return fp8_matrix(fp8, x, holds, {true, true}, fp8_largest(fp8, x));
  };
  for (const Holds holds : {Holds::values, Holds::gradients}) {
    const Fp8Factor left = factors(a, holds).rows, right = factors(b, Holds::values).columns;
    const at::Tensor by_device = fp8_native_product(fp8, left, right).to(at::kFloat),
                     emulated = fp8_product(fp8, left, right, at::kFloat);
    EXPECT_LE(((by_device - emulated).abs().max() / emulated.abs().max()).item<double>(), 1.0 / 128);
    const Fp8Factor same = factors(b.t().contiguous(), Holds::values).rows;
    EXPECT_TRUE(fp8_native_product(fp8, left, same).to(at::kFloat).equal(by_device));
  }
}

// Two samples of random tokens, or four random images.
inline Batch random_samples(const specs::SampleShape& sample) {
  const bool is_image = sample.kind == specs::SampleShape::Kind::image;
  std::vector<int64_t> shape = sample.input;
  shape.insert(shape.begin(), is_image ? 4 : 2);
  const auto classes = [&](at::IntArrayRef of) { return at::randint(sample.num_classes, of, at::kLong); };
  if (is_image) return {at::randn(shape, at::kDouble), classes(shape.front())};
  const at::Tensor inputs = classes(shape);
  return {inputs, classes(shape)};
}

// The loss and gradients of a model in bf16 may be at most 25 % farther from fp64 than those with PyTorch's
// kernels. If only the first `num_blocks` are run, their output and running statistics take the place of the
// loss, and the limit is twice as far: rounding decides which values ReLU sets to zero, and batch norm
// amplifies that from layer to layer, so that a whole residual network in bf16 is far from fp64 whatever
// computes it.
inline void check_step(const Kernels& kernels, at::Device device, const std::string& model,
                       bool splits_backward, int64_t num_blocks = std::numeric_limits<int64_t>::max()) {
  SCOPED_TRACE(model + (splits_backward ? ", backward in two parts" : ""));
  const Choice given = choice_from_text(model);
  const Choice choice = resolve(given, specs::model_spec(given.name).options, "model");
  at::manual_seed(3);
  const Batch batch = random_samples(specs::model_table(choice)->sample);
  const auto trained = [&](at::ScalarType type, at::Device on, const Kernels& fused) {
    auto model = make_model(choice, type, on);
    model->gpu_forms = type == at::kBFloat16;
    model->fused = fused;
    model->splits_backward = splits_backward;
    materialize(*model, 1);
    if (fused) fused->adds_gradients = !splits_backward;
    for (const auto& group : model->table().groups)
      for (const auto& spec : group.parameters)
        model->parameter(spec.name).mutable_grad() = at::zeros_like(model->parameter(spec.name));
    const Batch here = model->prepared(batch);
    at::Tensor h = here.inputs;
    for (const auto& block : model->blocks())
      if (&block - model->blocks().data() < num_blocks) h = block.forward(h, here);
    h.backward(h.dim() == 0 ? at::Tensor() : h.detach());
    return std::pair(h.detach().to(at::kCPU, at::kDouble), std::move(model));
  };
  const auto [exact_output, exact] = trained(at::kDouble, at::kCPU, {});
  const auto [torch_output, torch] = trained(at::kBFloat16, device, {});
  const auto [fused_output, fused] = trained(at::kBFloat16, device, kernels);
  const double factor = num_blocks < std::ssize(exact->blocks()) ? 2 : 1.25;
  const auto expect_near = [=](const std::string& name, const at::Tensor& by_ours, const at::Tensor& by_torch,
                               const at::Tensor& expected) {
    const auto distance = [&](const at::Tensor& value) {
      return ((value.to(at::kCPU, at::kDouble) - expected).norm() / expected.norm()).item<double>();
    };
    EXPECT_LE(distance(by_ours), factor * distance(by_torch) + 0x1p-8) << name;
  };
  expect_near("output", fused_output, torch_output, exact_output);
  if (exact_output.dim() == 0) {
    EXPECT_NEAR(fused_output.item<double>(), exact_output.item<double>(), 1e-2 * exact_output.item<double>());
  }
  for (const auto& group : exact->table().groups) {
    if (group.first_block >= num_blocks) continue;
    for (const auto& spec : group.parameters)
      expect_near(spec.name, fused->parameter(spec.name).grad(), torch->parameter(spec.name).grad(),
                  exact->parameter(spec.name).grad());
  }
  for (const auto& spec : exact->table().buffers)
    if (spec.block < num_blocks)
      expect_near(spec.name, fused->buffer(spec.name), torch->buffer(spec.name), exact->buffer(spec.name));
}

}  // namespace shardmark
