// Tests batch norm with statistics over all ranks, in every precision. It communicates inside forward and
// backward, and its backward passes its own statistics to kernels that expect them in a certain type. This
// file must run last: a failure inside such a block ends the whole job, because the other ranks wait in it.
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

class SynchronisedBatchNorm : public GpuTest {};

TEST_F(SynchronisedBatchNorm, InLowPrecisionFollowsFp32) {
  Case c{kModels[2], kOptimizers[1], at::kFloat};
  ASSERT_NE(c.model.find("batch_norm=sync"), std::string::npos);
  c.num_steps = 3;
  const Outcomes single = train_single(c, *alone_, comm_->size());
  for (const auto compute : {at::kFloat, at::kBFloat16, at::kHalf}) {
    c.precision = Precision{compute, at::kFloat, at::kFloat};
    for (const auto& strategy : {"ddp", "fsdp"}) {
      SCOPED_TRACE(std::string(strategy) + " " + at::toString(compute));
      const Outcomes run = train(c, strategy, *comm_);
      EXPECT_LE(largest_relative(run.losses, single.losses), compute == at::kFloat ? 1e-3 : 3e-2);
    }
  }
}

// Recomputed blocks do not update the running statistics again, but they reduce over ranks a second time.
TEST_F(SynchronisedBatchNorm, IsRecomputed) {
  Case c{kModels[2], kOptimizers[0]};
  c.num_steps = 2;
  const Outcomes kept = train(c, "fsdp", *comm_);
  c.recompute = 1;
  const Outcomes again = train(c, "fsdp", *comm_);
  EXPECT_LE(largest_relative(again.losses, kept.losses), 1e-10);
  EXPECT_LE(parameter_error(again, kept), 1e-10);
  for (const auto& [name, value] : kept.buffers)
    EXPECT_TRUE(at::allclose(again.buffers.at(name), value, 1e-10, 1e-12)) << name;
}

}  // namespace
}  // namespace shardmark
