// Tests collectives that blocks start themselves: if one rank fails inside a block, no other rank is left
// waiting.
// RANKS 2 3
#include <gtest/gtest.h>

#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

constexpr int64_t kNever = -1;

struct Counted {
  int64_t by_blocks = 0;  // collectives started by blocks
  int64_t in_all = 0;     // all operations of this rank
};

// Runs two steps. Rank 0 throws in place of collective number `fails_at`.
Counted two_steps(Communicator& comm, int64_t fails_at) {
  const Case c{"resnet(layers=20, width=4, image=8, batch_norm=sync)", "sgd", at::kDouble};
  const auto model = make_model(resolved_model(c.model), c.dtype, comm.device());
  TrainingState state = make_state({*model, comm, resolved_optimizer(c.optimizer), 7}, "fsdp");
  state.publish();
  const auto source = make_source({"synthetic", {{"size", 64}}}, {model->table().sample, c.dtype, 7});
  const DistributedSampler sampler(source->size(), comm.size(), comm.rank(), c.batch_size, 1, 7);
  GradientGuard guard(0, false, comm.device());
  Executor executor(state, guard, /*seed=*/7);
  int64_t num_calls = 0;
  model->start_collective = [&, start = model->start_collective](auto... call) {
    if (comm.rank() == 0 && num_calls == fails_at) throw std::runtime_error("no room");
    ++num_calls;
    return start(call...);
  };
  comm.reset_traffic();
  for (int step = 0; step < 2; ++step)
    executor.step([&] { return source->fetch(sampler.draw(step, 0)); }, /*wants_norm=*/true);
  EXPECT_EQ(executor.failure() != nullptr, fails_at != kNever && comm.rank() == 0);
  return {num_calls, comm.traffic().num_operations};
}

TEST(BlockCalls, ARankThatFailsInsideABlockLeavesNoneWaiting) {
  const HostGroup world = HostGroup::world();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  const Counted expected = two_steps(*comm, kNever);
  EXPECT_EQ(expected.by_blocks, 2 * 2 * 21)
      << "two steps, forward and backward of the norms of 19 convolutions and 2 shortcuts";
  for (const int64_t fails_at : {0, 1, 20, 21, 30, 41}) {
    const Counted counted = two_steps(*comm, fails_at);
    EXPECT_EQ(counted.by_blocks, comm->rank() == 0 ? fails_at : expected.by_blocks);
    EXPECT_EQ(counted.in_all, expected.in_all) << fails_at;
  }
}

}  // namespace
}  // namespace shardmark
