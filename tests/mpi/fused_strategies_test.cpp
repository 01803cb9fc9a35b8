// Tests all strategies with the kernels of src/kernels on an emulated GPU: kernels add gradients in the
// memory that the strategy provides, and the update is done in one pass.
// RANKS 2
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

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
