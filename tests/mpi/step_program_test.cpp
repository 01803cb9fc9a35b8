// A step makes the calls of its program, as communicators count them: every strategy, on every rank.
// RANKS 1 2 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "runner/workloads/training_setup.h"
#include "tests/mpi/strategy_cases.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

class StepProgram : public ::testing::Test {
 protected:
  StepProgram() { at::set_num_threads(1); }

  Point point(const std::string& model, const std::string& strategy) {
    Point p;
    p.workload = "training";
    p.ranks = world_.size();
    p.training.model = resolved_model(model);
    p.training.data = {"synthetic", {{"size", 64}}};
    p.training.strategy = resolved_strategy(strategy);
    p.training.optimizer = resolved_optimizer("adamw(lr=0.001)");
    p.training.batch_size = 2;
    return p;
  }

  // What the third of three steps calls.
  void check(const Point& p) {
    SCOPED_TRACE(shardmark::to_text(p) + " accumulation " + std::to_string(p.training.accumulation));
    PhaseClock clock(comm_->device());
    TrainingSetup setup(p, *comm_);
    setup.allocate(clock);
    setup.state->publish();
    const auto source =
        make_source(p.training.data, {setup.model->table().sample, setup.model->dtype(), p.seed});
    const int64_t accumulation = p.training.accumulation;
    Loader loader(*source,
                  DistributedSampler(source->size(), comm_->size(), comm_->rank(), 2, accumulation, 7),
                  accumulation, comm_->device(), /*depth=*/0);
    for (int i = 0; i < 3; ++i) {
      comm_->reset_traffic();
      setup.executor->step([&] { return loader.next(); });
      if (setup.executor->failure()) std::rethrow_exception(setup.executor->failure());
    }
    const Traffic traffic = comm_->traffic();
    double bytes = 0;
    decltype(traffic.operations) calls = {};
    const auto& program = setup.state->step(setup.guard->needs_norm()).program();
    for (const strategies::CollectiveCall& call : program.calls) {
      bytes += call.bytes;
      ++calls.at(static_cast<size_t>(call.what));
    }
    EXPECT_EQ(traffic.operations, calls);
    EXPECT_EQ(traffic.payload_bytes, bytes);

    const auto table = specs::model_spec(p.training.model.name).table(p.training.model.options);
    strategies::StepInput input = strategies::step_input(p, table);
    EXPECT_EQ(strategies::strategy(p.training.strategy.name).step(input).calls, program.calls)
        << "what plan and predict go by is what rank 0 does, and all ranks";
  }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ = make_communicator("mpi", world_, at::kCPU);
};

TEST_F(StepProgram, IsWhatHappens) {
  std::vector<std::string> strategies = all_strategies(world_.size());
  for (const std::string reduction : {"cast(to=bf16)", "topk(ratio=0.01)", "int8", "powersgd(rank=2)"})
    strategies.push_back("ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=" + reduction + ")");
  for (const auto& model : {kModels[0], kModels[1]})
    for (const auto& strategy : strategies)
      for (const int64_t accumulation : {1, 3}) {
        Point p = point(model, strategy);
        p.training.accumulation = accumulation;
        check(p);
      }
}

TEST_F(StepProgram, ClippedAndInMixedPrecision) {
  for (const std::string& strategy : kKinds)
    for (const std::string reduce : {"same", "fp32"}) {
      Point p = point(kModels[1], strategy);
      p.training.precision = "bf16";
      p.training.reduce_dtype = reduce;
      p.training.clip_norm = 1;
      p.training.accumulation = 2;
      check(p);
    }
}

// Synchronised batch norm sums inside its blocks, once more where a block is computed again.
TEST_F(StepProgram, SumsInsideBlocks) {
  for (const std::string strategy : {"ddp", "fsdp", "single"})
    for (const int64_t recompute : {0, 2}) {
      Point p = point(kModels[2], strategy);
      p.training.checkpointing = recompute;
      check(p);
    }
}

// The times of blocks are those between them: nothing is counted twice, and a block takes some time.
TEST_F(StepProgram, BlocksTakeTime) {
  BlockTimer timer(at::kCPU);
  using What = strategies::Instruction::What;
  for (int i = 0; i < 3; ++i) {
    timer.begin(What::data, 0);
    timer.begin(What::forward, 0);
    timer.begin(What::forward, 1);
    timer.begin(What::backward, 1);
    timer.begin(What::backward, 0);
    timer.begin(What::update, 0);
    timer.end_step();
  }
  const auto medians = timer.medians(2);
  ASSERT_EQ(medians.size(), 6);
  for (const double seconds : medians) EXPECT_GT(seconds, 0);
}

}  // namespace
}  // namespace shardmark
