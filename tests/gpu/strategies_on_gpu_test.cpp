// Every registered strategy on a GPU equals `single` on the same GPU, in every precision, and `single` on a
// GPU equals `single` on the CPU.
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

const std::string& kMlp = kModels[0];
const std::string& kGpt2 = kModels[1];
const std::string& kSyncResNet = kModels[2];
const std::string& kFrozenResNet = kModels[3];

class StrategiesOnGpu : public GpuTest {
 protected:
  std::vector<std::string> all() const { return all_strategies(comm_->size()); }
  // Options affect when which groups are communicated, and gpt2 has all kinds of groups. For the other
  // models, one strategy of each kind is enough, because creating a strategy takes longer on a GPU than its
  // steps.
  std::vector<std::string> strategies_for(const std::string& model) const {
    return model == kGpt2 || (model == kMlp && !is_emulated()) ? all() : kKinds;
  }
  // If operations take milliseconds, only the optimizer with more state is tested.
  std::vector<std::string> optimizers() const {
    return is_emulated() ? std::vector{kOptimizers[1]} : kOptimizers;
  }
  int64_t num_steps() const { return is_emulated() ? 3 : 5; }

  void expect_equal(const Case& c, const std::string& strategy, const Outcomes& single, double tolerance) {
    expect_equals_single(c, strategy, *comm_, single, tolerance);
  }
};

TEST_F(StrategiesOnGpu, EqualSingleInFp64) {
  for (const auto& model : kModels) {
    for (const auto& optimizer : optimizers()) {
      Case c{model, optimizer};
      c.num_steps = num_steps();
      const Outcomes single = train_single(c, *alone_, comm_->size());
      for (const auto& strategy : strategies_for(model)) expect_equal(c, strategy, single, 1e-10);
    }
  }
}

// The kernels of the two libraries share nothing but the formulas, so results differ only by rounding.
TEST_F(StrategiesOnGpu, SingleEqualsTheCpu) {
  for (const auto& model : kModels) {
    for (const auto& optimizer : kOptimizers) {
      SCOPED_TRACE(model + " " + optimizer);
      for (const double clip_norm : {0.0, 0.1}) {
        Case c{model, optimizer};
        c.clip_norm = clip_norm;
        const Outcomes on_cpu = train(c, "single", *cpu_alone_);
        const Outcomes on_gpu = train(c, "single", *alone_);
        EXPECT_LE(largest_relative(on_gpu.losses, on_cpu.losses), 1e-9);
        EXPECT_LE(largest_relative(on_gpu.norms, on_cpu.norms), 1e-9);
        EXPECT_LE(parameter_error(on_gpu, on_cpu), 1e-9);
        for (const auto& [name, value] : on_cpu.buffers)
          EXPECT_TRUE(at::allclose(on_gpu.buffers.at(name).cpu(), value, 1e-9, 1e-12)) << name;
      }
    }
  }
}

// Compares a strategy over NCCL on GPUs with the same strategy over MPI on CPUs.
TEST_F(StrategiesOnGpu, StrategiesEqualTheCpu) {
  for (const auto& strategy : kKinds) {
    SCOPED_TRACE(strategy);
    const Case c{kGpt2, kOptimizers[1], at::kDouble, 2, 1, num_steps()};
    const Outcomes on_cpu = train(c, strategy, *cpu_comm_);
    const Outcomes on_gpu = train(c, strategy, *comm_);
    EXPECT_LE(largest_relative(on_gpu.losses, on_cpu.losses), 1e-9);
    EXPECT_LE(parameter_error(on_gpu, on_cpu), 1e-9);
  }
}

// Kernels for another batch size add in another order. A wrong scale or a missing reduction would change
// results by more than 1e-3. Synchronised batch norm is left out, as on the CPU, because rounding moves
// activations across the kink of ReLU.
TEST_F(StrategiesOnGpu, EqualSingleInFp32) {
  for (const auto& model : {kMlp, kGpt2, kFrozenResNet}) {
    Case c{model, kOptimizers[0], at::kFloat};
    c.num_steps = num_steps();
    const Outcomes single = train_single(c, *alone_, comm_->size());
    for (const auto& strategy : kKinds) expect_equal(c, strategy, single, 1e-4);
  }
}

TEST_F(StrategiesOnGpu, AccumulationEqualsALargeBatch) {
  Case c{kGpt2, kOptimizers[1]};
  c.accumulation = 3;
  c.num_steps = num_steps();
  const Outcomes single = train_single(c, *alone_, comm_->size());
  for (const auto& strategy : is_emulated() ? kKinds : all()) expect_equal(c, strategy, single, 1e-10);
  expect_equal(c, comm_->size() == 1 ? "single" : "ddp", single, 1e-10);
}

TEST_F(StrategiesOnGpu, ClippedStepsEqualSingle) {
  Case c{kGpt2, kOptimizers[0]};
  c.clip_norm = 0.1;
  c.num_steps = num_steps();
  const Outcomes single = train_single(c, *alone_, comm_->size());
  EXPECT_GT(single.norms.front(), c.clip_norm);  // the reported norm is that before clipping
  for (const auto& strategy : is_emulated() ? kKinds : all()) expect_equal(c, strategy, single, 1e-7);
}

// Recomputed blocks drop the same elements. Otherwise the loss would change by far more than 1e-6. Results
// are not bitwise equal as on the CPU, because some CUDA kernels of backward add in an arbitrary order.
TEST_F(StrategiesOnGpu, CheckpointedStepsAreEqual) {
  for (const std::string model :
       {"gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37, dropout=0.2)",
        "resnet(layers=20, width=3, image=9, batch_norm=local)"}) {
    for (const auto& strategy : kKinds) {
      Case c{model, kOptimizers[0], at::kDouble};
      c.num_steps = 2;
      const Outcomes kept = train(c, strategy, *comm_);
      for (c.recompute = 1; c.recompute <= 2; ++c.recompute) {
        SCOPED_TRACE(model + " " + strategy + " every " + std::to_string(c.recompute));
        const Outcomes again = train(c, strategy, *comm_);
        EXPECT_LE(largest_relative(again.losses, kept.losses), 1e-10);
        EXPECT_LE(parameter_error(again, kept), 1e-10);
        for (const auto& [name, value] : kept.buffers)  // running statistics are updated once
          EXPECT_TRUE(at::allclose(again.buffers.at(name), value, 1e-10, 1e-12)) << name;
      }
    }
  }
}

}  // namespace
}  // namespace shardmark
