// A step makes exactly the calls of its program, as counted by the communicators, for every strategy and on
// every rank.
// RANKS 1 2 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <numeric>

#include "executor/training_setup.h"
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

  // Checks the calls of the third of three steps.
  void check(const Point& p) {
    SCOPED_TRACE(shardmark::to_text(p) + " accumulation " + std::to_string(p.training.accumulation));
    TrainingSetup setup(p, *comm_);
    setup.allocate();
    setup.state->publish();
    const auto source =
        make_source(p.training.data, {setup.model->table().sample, setup.model->dtype(), p.seed});
    Loader loader(*source, DistributedSampler(p, source->size(), comm_->rank()), comm_->device(),
                  /*depth=*/0);
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

    const strategies::RankStep rank_step(p);
    strategies::StepInput input = rank_step.input();
    EXPECT_EQ(strategies::strategy(p.training.strategy.name).step(input).calls, program.calls)
        << "what plan and predict go by is what rank 0 does, and all ranks";
    const double traffic_bytes = strategies::cost_of(program, input).traffic_bytes;
    EXPECT_NEAR(traffic.ring_bytes, traffic_bytes, 1e-9 * traffic_bytes);
  }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ = make_communicator("pt2pt", world_, at::kCPU);
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

// Synchronised batch norm reduces inside its blocks, and once more if a block is recomputed.
TEST_F(StepProgram, SumsInsideBlocks) {
  for (const std::string strategy : {"ddp", "fsdp", "single"})
    for (const int64_t recompute : {0, 2}) {
      Point p = point(kModels[2], strategy);
      p.training.recompute = recompute;
      check(p);
    }
}

// The times of blocks and phases add up to the step, whether instructions are recorded one by one or together
// with local work and collectives in between. Nothing is counted twice.
TEST_F(StepProgram, PartsAddUpToTheStep) {
  using Detail = StepRecorder::Detail;
  const Point p = point(kModels[1], "fsdp");
  const auto table = specs::model_spec(p.training.model.name).table(p.training.model.options);
  const strategies::RankStep rank_step(p);
  strategies::StepInput input = rank_step.input();
  input.accumulation = 2;
  input.recompute = 2;
  const strategies::Program program = strategies::strategy("fsdp").step(input);
  for (const Detail detail : {Detail::phases, Detail::blocks, Detail::instructions}) {
    StepRecorder recorder(at::kCPU, detail);
    for (int step = 0; step < 3; ++step) {
      recorder.begin_step(program);
      for (size_t i = 0; i < program.instructions.size(); ++i) {
        recorder.begin_instruction(i);
        const Timeline::Exposed exposed(detail == Detail::phases ? &recorder.timeline() : nullptr, 0);
      }
    }
    recorder.end();
    const auto steps = recorder.take();
    ASSERT_EQ(steps.size(), 3);
    for (const RecordedStep& step : steps) {
      const auto phases = step.phases();
      EXPECT_NEAR(std::accumulate(phases.begin(), phases.end(), 0.0), step.seconds(), 1e-9);
      for (const Phase phase : {Phase::data, Phase::forward, Phase::backward, Phase::optimizer})
        EXPECT_GT(phases[static_cast<size_t>(phase)], 0);
      EXPECT_EQ(phases[static_cast<size_t>(Phase::exposed)] > 0, detail == Detail::phases);
      EXPECT_EQ(step.spans.size() == program.instructions.size(), detail == Detail::instructions);
    }
    const auto medians = block_medians(steps, table.blocks.size());
    ASSERT_EQ(medians.size(), 2 + 2 * table.blocks.size());
    EXPECT_TRUE(parameter_medians(steps, table.blocks.size()).empty());  // backward is not split
    if (detail == Detail::phases) continue;                              // phases do not distinguish blocks
    for (const double seconds : medians) EXPECT_GT(seconds, 0);
    EXPECT_LT(2 * (std::accumulate(medians.begin(), medians.end(), 0.0) - medians.back()) + medians.back(),
              3 * steps[1].seconds());
  }
}

}  // namespace
}  // namespace shardmark
