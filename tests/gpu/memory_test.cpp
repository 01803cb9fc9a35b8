// The memory of every strategy on a GPU, as PyTorch's allocator counts it, equals its formula. All memory is
// freed after a run, and the peak shows the savings of sharding.
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/strategy_cost_checks.h"

namespace shardmark {
namespace {

class Memory : public GpuTest {
 protected:
  void check(const Case& c, const std::string& strategy) { CostChecks(world_, *comm_).check(c, strategy); }
};

TEST_F(Memory, OfEveryStrategyEqualsItsPrediction) {
  std::vector<std::string> strategies = is_emulated() ? kKinds : all_strategies(comm_->size());
  for (const char* reduction : {"cast(to=bf16)", "topk(ratio=0.01)", "int8", "powersgd(rank=2)"})
    strategies.push_back(std::string("ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=") + reduction +
                         ")");
  for (const auto& strategy : strategies)
    check({kModels[1], "adamw(lr=0.001)", at::kFloat, 2, 3, 1}, strategy);
  check({kModels[3], "sgd(lr=0.1, momentum=0.9)", at::kDouble, 2, 1, 1}, "fsdp");
}

// Includes master weights, their copies, and gradients that are reduced in either type.
TEST_F(Memory, OfMixedPrecisionEqualsItsPrediction) {
  for (const auto reduce : {at::kBFloat16, at::kFloat}) {
    for (const auto& strategy : kKinds) {
      Case c{kModels[1], "adamw(lr=0.001)", at::kFloat, 2, 2, 1};
      c.precision = Precision{at::kBFloat16, at::kFloat, reduce};
      check(c, strategy);
    }
  }
}

// The first run leaves workspaces of libraries allocated. The second run then ends with as much memory as it
// began with.
TEST_F(Memory, IsGivenBack) {
  for (const auto& strategy : kKinds) {
    const Case c{kModels[1], kOptimizers[1], at::kFloat, 2, 1, 2};
    train(c, strategy, *comm_);
    const int64_t before = meter::read().total;
    train(c, strategy, *comm_);
    EXPECT_EQ(meter::read().total, before) << strategy;
  }
}

// The peak of a step includes everything in the formula. In addition there are a batch and its activations,
// which are small for a wide model. A tolerance of half of the formula is enough for them, and too little for
// a second copy of anything.
TEST_F(Memory, PeakIsThePredictionAndActivations) {
  const Case c{"mlp(features=64, width=2048, layers=4, classes=8)", kOptimizers[1], at::kFloat, 4, 1, 3};
  for (const auto& strategy : kKinds) {
    SCOPED_TRACE(strategy);
    train(c, strategy, *comm_);  // allocates the workspaces of libraries
    const int64_t before = meter::read().total;
    int64_t largest = 0;
    const auto made = [&] {
      meter::reset_peak();  // excludes temporary memory of initial values
      largest = meter::read().total;
    };
    train(c, strategy, *comm_, {.change = {}, .made = made});
    const double peak = static_cast<double>(meter::read().peak - before);
    const strategies::Cost cost = CostChecks(world_, *comm_).cost(c, strategy);
    const double bytes =
        cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes + cost.transient_bytes;
    EXPECT_GE(peak, static_cast<double>(largest - before));
    EXPECT_GE(world_.max(peak), bytes);
    // After the last step, the test gathers the state, which takes the memory of one more group.
    EXPECT_LE(peak, 1.5 * bytes);
  }
}

// The meter counts the same bytes as the device. The allocator has reserved at least that much.
TEST_F(Memory, MeterAgreesWithTheDevice) {
  empty_caches(device_);
  const MemoryReading before = meter::read();
  {
    const at::Tensor tensor = at::empty({64 << 20}, at::TensorOptions(device_).dtype(at::kByte));
    EXPECT_EQ(meter::read().total - before.total, 64 << 20);
    const at::Tensor registered = comm_->allocate(8 << 20, at::kFloat);
    EXPECT_EQ(meter::read().total - before.total, (64 << 20) + (32 << 20));
  }
  EXPECT_EQ(meter::read().total, before.total);
  EXPECT_GE(meter::read().peak - before.total, (64 << 20) + (32 << 20));
}

}  // namespace
}  // namespace shardmark
