// Tests all strategies with the kernels of src/kernels on an emulated GPU: kernels add gradients in the
// memory that the strategy provides, and the update is done in one pass.
// RANKS 2
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "device/meter.h"
#include "strategies/activations.h"
#include "tests/mpi/emulated_kernels.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

class FusedStrategies : public OnCpuRanks {
 protected:
  static constexpr const char* kGpt2 = "gpt2(layers=1, width=48, heads=3, sequence=16, vocabulary=131)";
  static constexpr const char* kLlama =
      "llama(layers=1, width=48, heads=3, kv_heads=1, inner=72, sequence=16, vocabulary=131)";
  static constexpr const char* kResNet = "resnet(layers=20, width=8, image=9)";
  static Case bf16(at::ScalarType reduce, const std::string& model = kGpt2) {
    Case c{model, kOptimizers[1], at::kFloat};
    c.precision = Precision{at::kBFloat16, at::kFloat, reduce};
    c.gpu_forms = true;
    c.num_steps = 3;
    return c;
  }

  void expect_as_by_torch(Case c, const std::string& strategy) {
    const Outcomes by_torch = train(c, strategy, *comm);
    c.fused = emulated_kernels();
    const Outcomes by_ours = train(c, strategy, *comm);
    EXPECT_LE(largest_relative(by_ours.losses, by_torch.losses), 5e-3);
    EXPECT_LE(largest_relative(by_ours.norms, by_torch.norms), 2e-2);
    EXPECT_LE(parameter_error(by_ours, by_torch), 0.1);
  }
};

// Compares bf16 training with PyTorch's kernels and with ours. The rounding differs slightly, while a lost or
// duplicated gradient would change results by a factor.
TEST_F(FusedStrategies, TrainAsWithTorchsKernels) {
  std::vector<std::string> strategies = kKinds;
  strategies.emplace_back("single");
  for (const std::string& strategy : strategies)
    for (const auto& [accumulation, reduce] :
         {std::pair(int64_t{1}, at::kBFloat16), {int64_t{1}, at::kFloat}, {int64_t{2}, at::kBFloat16}}) {
      SCOPED_TRACE(strategy + " " + at::toString(reduce) + " " + std::to_string(accumulation));
      Case c = bf16(reduce);
      c.accumulation = accumulation;
      expect_as_by_torch(c, strategy);
    }
}

TEST_F(FusedStrategies, OfLlamaTrainAsWithTorchsKernels) {
  for (const std::string strategy : {"single", "ddp", "fsdp"}) {
    SCOPED_TRACE(strategy);
    expect_as_by_torch(bf16(at::kBFloat16, kLlama), strategy);
  }
}

// Batch norm amplifies rounding from layer to layer, so that updates differ from those with PyTorch's kernels
// wherever a gradient is small. So the same kernels are compared, too, with their gradients returned to
// autograd, which adds them to the parameters', and with the update in several passes.
TEST_F(FusedStrategies, OfResNetTrainAsWithTorchsKernels) {
  Case c = bf16(at::kBFloat16, kResNet);
  c.batch_size = 4;
  const Outcomes by_torch = train(c, "single", *comm);
  c.fused = emulated_kernels();
  for (const auto& [strategy, recompute] : {std::pair("single", 0), {"ddp", 2}, {"fsdp", 0}}) {
    SCOPED_TRACE(strategy);
    c.recompute = recompute;
    c.adds_gradients = false;
    const Outcomes by_autograd = train(c, strategy, *comm);
    c.adds_gradients = true;
    const Outcomes by_ours = train(c, strategy, *comm);
    EXPECT_LE(largest_relative(by_ours.losses, by_autograd.losses), 1e-3);
    EXPECT_LE(largest_relative(by_ours.norms, by_autograd.norms), 5e-3);
    EXPECT_LE(parameter_error(by_ours, by_autograd), 0.1);
    if (strategy != std::string("single")) continue;
    EXPECT_LE(largest_relative(by_ours.losses, by_torch.losses), 1e-2);
    EXPECT_LE(largest_relative(by_ours.norms, by_torch.norms), 1e-1);
  }
}

// The formula knows nothing of kernels: they keep what PyTorch's keep for backward.
TEST_F(FusedStrategies, OfResNetHoldNoMoreThanWithTorchsKernels) {
  static const bool installed = (meter::install(), true);
  EXPECT_TRUE(installed);
  for (const int64_t recompute : {0, 2}) {
    SCOPED_TRACE(recompute);
    Case c = bf16(at::kBFloat16, kResNet);
    c.batch_size = 32;
    c.recompute = recompute;
    c.num_steps = 1;
    const auto peak = [&] {
      int64_t held = 0;
      const auto begins = [&] {
        held = meter::read().total;
        meter::reset_peak();
      };
      train(c, "single", *alone, {.change = {}, .made = {}, .begins = begins});
      return static_cast<double>(meter::read().peak - held);
    };
    const double by_torch = peak();
    c.fused = emulated_kernels();
    const double by_ours = peak();
    EXPECT_LE(by_ours, 1.02 * by_torch);
    const specs::ModelTable table = *specs::model_table(resolved_model(c.model));
    strategies::StepInput input{table, 1, 1, bytes_of(*c.precision), 2, {}};
    input.recompute = recompute;
    EXPECT_NEAR(by_ours / strategies::activation_bytes(input, static_cast<double>(c.batch_size)), 1, 0.1);
  }
}

// Gradients are divided by the same factor if they are clipped in the one-pass update.
TEST_F(FusedStrategies, ClipAsWithTorchsKernels) {
  Case c = bf16(at::kBFloat16);
  c.clip_norm = 0.1;
  const Outcomes by_torch = train(c, "ddp", *comm);
  c.fused = emulated_kernels();
  const Outcomes by_ours = train(c, "ddp", *comm);
  EXPECT_GT(by_ours.norms.front(), c.clip_norm);
  EXPECT_LE(largest_relative(by_ours.norms, by_torch.norms), 2e-2);
  EXPECT_LE(parameter_error(by_ours, by_torch), 0.1);
}

}  // namespace
}  // namespace shardmark
