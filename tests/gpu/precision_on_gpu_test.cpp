// Low precision on a GPU follows fp32 under every strategy, and fp16's loss scale leaves the same steps out
// on all ranks.
#include "tests/gpu/gpu_fixture.h"
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

// Compute type, type of the gradients on their way; master weights in fp32.
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
          EXPECT_LE(largest_relative(train(c, strategy, *comm_, nullptr).losses, single.losses), 1e-2);
        }
      }
    }
  }
}

// The same on one device alone: without any communication in between.
TEST_F(PrecisionOnGpu, SingleFollowsTheCpu) {
  for (const auto& model : {kModels[0], kModels[1], kModels[3]}) {
    Case c{model, kOptimizers[1], at::kFloat};
    const Outcomes on_cpu = train(c, "single", *cpu_alone_, nullptr);
    const auto follows = [&](const char* name, double tolerance) {
      SCOPED_TRACE(model + " " + name);
      EXPECT_LE(largest_relative(train(c, "single", *alone_, nullptr).losses, on_cpu.losses), tolerance);
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

// The loss scale makes the backward of one rank overflow: all ranks leave that update out, and go on with
// half the scale.
TEST_F(PrecisionOnGpu, NonFiniteGradientsAreLeftOutByAllRanks) {
  for (const auto& strategy : is_emulated() ? kKinds : all_strategies(comm_->size())) {
    SCOPED_TRACE(strategy);
    const auto model = make_model(resolved_model(kModels[0]), at::kHalf, device_);
    const Choice choice = resolved_strategy(strategy);
    const auto trained = make_strategy(
        choice.name, {*model, *comm_, choice.options, resolved_optimizer(kOptimizers[1]), /*accumulation=*/1,
                      /*seed=*/7, Precision{at::kHalf, at::kFloat, at::kHalf}});
    GradientGuard guard(/*clip_norm=*/0, /*scales_loss=*/true, device_);
    PhaseClock clock(device_);
    TrainingLoop loop(*model, *trained, clock, guard, {});
    const auto batch = [&](double scale) {
      const auto on = at::TensorOptions(device_);
      return Batch{at::full({2, 13}, scale, on.dtype(at::kHalf)), at::zeros({2}, on.dtype(at::kLong))};
    };
    const auto weights = [&] {
      std::map<std::string, at::Tensor> all;
      trained->visit_state(State::weights, [&](const auto& name, const auto& value) { all[name] = value; });
      return all;
    };
    const auto before = weights();
    const double scale = guard.loss_scale().item<double>();
    loop.step([&] { return batch(comm_->rank() == comm_->size() - 1 ? 6e4 : 1); });
    EXPECT_EQ(guard.num_skipped(), 1);
    EXPECT_EQ(guard.loss_scale().item<double>(), scale / 2);
    for (const auto& [name, value] : weights()) EXPECT_TRUE(value.equal(before.at(name))) << name;
    for (int i = 0; i < 12; ++i) loop.step([&] { return batch(1); });  // until the scale is small enough
    EXPECT_LT(guard.num_skipped(), 13);
    bool moved = false;
    for (const auto& [name, value] : weights()) moved |= !value.equal(before.at(name));
    EXPECT_TRUE(moved);
  }
}

}  // namespace
}  // namespace shardmark
