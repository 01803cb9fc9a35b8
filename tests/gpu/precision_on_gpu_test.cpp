// Low precision on a GPU stays close to fp32 under every strategy, and the loss scale of fp16 skips the same
// steps on all ranks.
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/precision_checks.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

class PrecisionOnGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) num_steps_ = is_emulated() ? 3 : 10;
  }
  int64_t num_steps_ = 0;
};

// Varies the compute type and the type in which gradients are reduced. Master weights are in fp32.
TEST_F(PrecisionOnGpu, LowPrecisionFollowsFp32) {
  for (const auto& model : {kModels[0], kModels[1], kModels[3]}) {
    if (is_emulated() && model != kModels[1]) continue;
    Case c{model, kOptimizers[1], at::kFloat};
    c.num_steps = num_steps_;
    c.accumulation = 2;
    const Outcomes single = train_single(c, *alone_, comm_->size());
    for (const auto compute : {at::kBFloat16, at::kHalf}) {
      for (const auto reduce : {compute, at::kFloat}) {
        c.precision = Precision{compute, at::kFloat, reduce};
        if (is_emulated() && reduce != at::kFloat) continue;
        const bool every =
            !is_emulated() && model == kModels[1] && compute == at::kBFloat16 && reduce == at::kFloat;
        for (const auto& strategy : every ? all_strategies(comm_->size()) : kKinds) {
          SCOPED_TRACE(model + " " + strategy + " " + at::toString(compute) + " " + at::toString(reduce));
          EXPECT_LE(largest_relative(train(c, strategy, *comm_).losses, single.losses), 1e-2);
        }
      }
    }
  }
}

// The same on one device, without any communication.
TEST_F(PrecisionOnGpu, SingleFollowsTheCpu) {
  for (const auto& model : {kModels[0], kModels[1], kModels[3]}) {
    Case c{model, kOptimizers[1], at::kFloat};
    const Outcomes on_cpu = train(c, "single", *cpu_alone_);
    const auto follows = [&](const char* name, double tolerance) {
      SCOPED_TRACE(model + " " + name);
      EXPECT_LE(largest_relative(train(c, "single", *alone_).losses, on_cpu.losses), tolerance);
    };
    follows("fp32", 1e-4);
    use_tf32(true);
    follows("tf32", 1e-2);
    use_tf32(false);
    c.precision = Precision{at::kBFloat16, at::kFloat, at::kFloat};
    follows("bf16", 1e-2);
    c.precision = Precision{at::kHalf, at::kFloat, at::kFloat};
    follows("fp16", 1e-2);
  }
}

TEST_F(PrecisionOnGpu, NonFiniteGradientsAreLeftOutByAllRanks) {
  for (const auto& strategy : is_emulated() ? kKinds : all_strategies(comm_->size()))
    checks::leaves_out_non_finite_gradients(strategy, *comm_);
}

}  // namespace
}  // namespace shardmark
