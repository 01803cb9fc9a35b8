// The GPU variants of models give the same results, in every type, as the plain variants on the CPU.
// RANKS 1
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/device.h"
#include "device/meter.h"
#include "models/cross_entropy.h"
#include "models/model.h"
#include "tests/mpi/attention_checks.h"

namespace shardmark {
namespace {

class GpuModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU on this machine";
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // cuBLAS needs this to be deterministic
    use_device(gpu_);
    use_tf32(false);
  }

  at::Device gpu_{at::kCUDA, 0};
};

struct Kind {
  at::ScalarType dtype;
  double loss, gradient;  // the largest differences from fp64, relative
};
const std::vector<Kind> kModelKinds = {
    {at::kBFloat16, 2e-2, 0.7}, {at::kHalf, 5e-3, 0.35}, {at::kFloat, 1e-4, 0.05}, {at::kDouble, 1e-9, 1e-7}};

// Returns the loss, and the gradient of the parameter that backward reaches last.
std::pair<double, at::Tensor> trained(const Choice& choice, at::ScalarType dtype, at::Device device,
                                      const Batch& batch) {
  const auto model = make_model(choice, dtype, device);
  materialize(*model, 1);
  const bool tokens = !batch.inputs.is_floating_point();
  const Batch here{tokens ? batch.inputs.to(device) : batch.inputs.to(device, dtype),
                   batch.targets.to(device)};
  at::Tensor h = here.inputs;
  for (const auto& block : model->blocks()) h = block.forward(h, here);
  const double scale = dtype == at::kHalf ? 256 : 1;
  h.backward(at::full_like(h, scale));
  const auto& first = model->table().groups.front().parameters.front().name;
  return {h.item<double>(), model->parameter(first).grad().to(at::kCPU, at::kDouble) / scale};
}

void expect_near_fp64(const Choice& choice, at::Device gpu, const Batch& batch) {
  const auto [loss, gradient] = trained(choice, at::kDouble, at::kCPU, batch);
  for (const auto& kind : kModelKinds) {
    SCOPED_TRACE(to_text(choice) + " " + at::toString(kind.dtype));
    const auto [measured, direction] = trained(choice, kind.dtype, gpu, batch);
    EXPECT_LE(std::abs(measured - loss) / loss, kind.loss);
    EXPECT_LE(((direction - gradient).norm() / gradient.norm()).item<double>(), kind.gradient);
  }
}

Choice resolved(const std::string& name, const Options& options) {
  return resolve({name, options}, specs::model_spec(name).options, "model");
}

TEST_F(GpuModels, OfLanguage) {
  at::manual_seed(3);
  const Batch batch{at::randint(131, {4, 64}, at::kLong), at::randint(131, {4, 64}, at::kLong)};
  expect_near_fp64(
      resolved("gpt2", {{"layers", 2}, {"width", 128}, {"heads", 2}, {"sequence", 64}, {"vocabulary", 131}}),
      gpu_, batch);
  for (const bool tied : {true, false})
    expect_near_fp64(resolved("llama", {{"layers", 2},
                                        {"width", 256},
                                        {"heads", 4},
                                        {"kv_heads", 2},
                                        {"inner", 320},
                                        {"sequence", 64},
                                        {"vocabulary", 131},
                                        {"tied", tied}}),
                     gpu_, batch);
  // With 256 tokens and 64 experts, some experts get no token.
  for (const int64_t experts : {4, 64})
    expect_near_fp64(resolved("moe", {{"layers", 2},
                                      {"width", 256},
                                      {"heads", 4},
                                      {"kv_heads", 2},
                                      {"inner", 160},
                                      {"experts", experts},
                                      {"shared_inner", 64},
                                      {"aux_loss", 0.01},
                                      {"sequence", 64},
                                      {"vocabulary", 131}}),
                     gpu_, batch);
}

// The bounds are specific to this network. Rounding moves activations across the kink of ReLU, and depth
// amplifies the effect. On the CPU, gradients differ by 0.4, 0.15 and 0.01.
TEST_F(GpuModels, ResNetWithStatisticsOfEveryKind) {
  search_convolutions(gpu_);
  at::manual_seed(3);
  const Batch batch{at::randn({32, 3, 32, 32}, at::kDouble), at::randint(10, {32}, at::kLong)};
  for (const char* statistics : {"local", "sync", "frozen"})
    expect_near_fp64(resolved("resnet", {{"layers", 20}, {"width", 8}, {"batch_norm", statistics}}), gpu_,
                     batch);
}

TEST_F(GpuModels, LossHoldsTwoBytesOfALogitAndIsDeterministic) {
  const int64_t rows = 4096, width = 768, classes = 50257;
  meter::install(gpu_.index());
  const auto options = at::TensorOptions(gpu_).dtype(at::kBFloat16);
  const at::Tensor x = at::randn({rows, width}, options).set_requires_grad(true);
  const at::Tensor weight = (at::randn({classes, width}, options) * 0.02).set_requires_grad(true);
  const at::Tensor targets = at::randint(classes, {rows}, options.dtype(at::kLong));
  const double logits_bytes = 2.0 * static_cast<double>(rows * classes);
  const double weight_bytes = 2.0 * static_cast<double>(width * classes);

  const auto before = static_cast<double>(meter::read().total);
  meter::reset_peak();
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  const at::Tensor loss = linear_cross_entropy(x, weight, targets);
  loss.backward();
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
  const double held = static_cast<double>(meter::read().peak) - before;
  EXPECT_LE(held, 1.1 * logits_bytes + 3 * weight_bytes);  // the padded copy and the gradient of the weight

  const at::Tensor a = x.detach().to(at::kFloat).set_requires_grad(true),
                   b = weight.detach().to(at::kFloat).set_requires_grad(true);
  const at::Tensor expected = at::cross_entropy_loss(at::linear(a, b), targets);
  expected.backward();
  const auto distance = [](const at::Tensor& measured, const at::Tensor& exact) {
    return ((measured - exact).norm() / exact.norm()).item<double>();
  };
  EXPECT_LE(distance(loss.detach(), expected.detach()), 1e-4);
  EXPECT_LE(distance(x.grad(), a.grad()), 1e-2);
  EXPECT_LE(distance(weight.grad(), b.grad()), 1e-2);
}

// The kernels that context-parallel ranks use in 16 bits; one takes heads whose width is a multiple of 8.
TEST_F(GpuModels, AttentionOfContextRanksIsThatWithAMask) {
  if (const auto native = native_precisions(gpu_);
      std::find(native.begin(), native.end(), "bf16") == native.end())
    GTEST_SKIP() << "no kernel for this GPU";
  for (const int64_t width : {8, 12, 64}) {
    expect_attention_is_that_with_a_mask(gpu_, at::kBFloat16, 0.04, width);
    expect_attention_is_that_with_a_mask(gpu_, at::kHalf, 0.01, width);
  }
}

}  // namespace
}  // namespace shardmark
