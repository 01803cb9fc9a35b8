// Steps that are replayed as CUDA graphs equal steps that are launched kernel by kernel.
// RANKS 1
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

class StepGraphsOnGpu : public GpuTest {
 protected:
  void expect_equal(Case c, double tolerance) {
    SCOPED_TRACE(c.model + " " + c.optimizer + " " + std::to_string(c.accumulation) + " micro-batches");
    c.num_steps = 7;  // two programs are launched, captured and replayed
    const Outcomes launched = train(c, "single", *alone_);
    c.graph = true;
    const Outcomes replayed = train(c, "single", *alone_);
    EXPECT_LE(largest_relative(replayed.losses, launched.losses), tolerance);
    EXPECT_LE(largest_relative(replayed.norms, launched.norms), tolerance);
    EXPECT_LE(parameter_error(replayed, launched), tolerance);
    for (const auto& [name, value] : launched.buffers)
      EXPECT_TRUE(at::allclose(replayed.buffers.at(name), value, tolerance, tolerance)) << name;
  }
};

TEST_F(StepGraphsOnGpu, EqualLaunchedStepsInFp64) {
  for (const std::string& model : {kModels[0], kModels[1], kModels[3]})
    for (const std::string& optimizer : kOptimizers)
      for (const int64_t accumulation : {1, 3})
        for (const int64_t norm_every : {1, 2}) {
          Case c{model, optimizer, at::kDouble, 2, accumulation};
          c.norm_every = norm_every;
          expect_equal(c, 1e-9);
        }
}

TEST_F(StepGraphsOnGpu, ClipAndScaleAsLaunchedStepsDo) {
  for (const at::ScalarType compute : {at::kBFloat16, at::kHalf}) {
    Case c{kModels[1], kOptimizers[1]};
    c.precision = Precision{compute, at::kFloat, at::kFloat};
    c.clip_norm = 0.1;
    expect_equal(c, 1e-2);
  }
}

TEST_F(StepGraphsOnGpu, HoldFusedKernelsAndRecomputedBlocks) {
  Case c{"gpt2(layers=2, width=128, heads=2, sequence=64, vocabulary=131)", kOptimizers[1]};
  c.precision = Precision{at::kBFloat16, at::kFloat, at::kFloat};
  c.fused = fused_kernels(device_);
  expect_equal(c, 1e-2);
  c.recompute = 1;
  expect_equal(c, 1e-2);
}

}  // namespace
}  // namespace shardmark
