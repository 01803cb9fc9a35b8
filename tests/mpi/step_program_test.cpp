// The program that a strategy's law makes of a step is what ranks do, operation by operation and wait by
// wait.
// RANKS 1 2 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/mpi/training_fixture.h"
#include "workloads/step_trace.h"
#include "workloads/trainee.h"

namespace shardmark {
namespace {

const std::vector<std::string> kStrategies = {
    "single",
    "ddp",
    "ddp(bucket_mb=0.02, first_bucket_mb=0.004)",
    "ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=cast(to=bf16))",
    "ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=topk(ratio=0.01))",
    "ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=int8)",
    "ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=powersgd(rank=2))",
    "fsdp",
    "fsdp(prefetch=0)",
    "fsdp(prefetch=3, layout=dim0)",
    "fsdp(shard=gradients)",
    "fsdp(shard=optimizer)",
    "fsdp(shard=optimizer, layout=dim0)",
    "zero3",
    "zero3(prefetch=2, persistence=30)",
};
const std::vector<std::string> kInTwos = {"fsdp(group=2)", "fsdp(group=2, shard=gradients, layout=dim0)",
                                          "fsdp(group=2, shard=optimizer)", "fsdp(group=1)"};
const std::vector<std::string> kModels = {"mlp(features=13, width=19, layers=3, classes=5)",
                                          "gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37)"};

std::string to_text(const laws::Program& program) {
  std::string text;
  for (const laws::Moment& moment : program.moments) {
    text += "dfbusw"[static_cast<size_t>(moment.what)] + std::to_string(moment.index);
    if (moment.what == laws::Moment::What::start) {
      const auto& o = program.operations[static_cast<size_t>(moment.index)];
      text += ":" + o.name + ":" + std::to_string(static_cast<int64_t>(o.bytes)) + ":" +
              std::to_string(o.ranks) + "/" + std::to_string(o.stride) + "@" + std::to_string(o.root);
    }
    text += "\n";
  }
  return text;
}

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

  // The third of three steps.
  laws::Program traced(const Point& p) {
    Tap tap(*inner_);
    PhaseClock clock(tap.device());
    Trainee trainee(p, tap, clock);
    const auto source =
        make_source(p.training.data, {trainee.model->table().sample, trainee.model->dtype(), p.seed});
    const int64_t accumulation = p.training.accumulation;
    Loader loader(*source, DistributedSampler(source->size(), tap.size(), tap.rank(), 2, accumulation, 7),
                  accumulation, tap.device(), /*depth=*/0);
    StepTrace trace;
    tap.set_listener(&trace);
    trainee.loop->set_observer(&trace);
    for (int i = 0; i < 3; ++i) {
      trace.begin_step();
      trainee.loop->step([&] { return loader.next(); });
      if (trainee.loop->failure()) std::rethrow_exception(trainee.loop->failure());
    }
    tap.set_listener(nullptr);
    return trace.program();
  }

  void check(const Point& p) {
    const std::string what =
        shardmark::to_text(p) + " accumulation " + std::to_string(p.training.accumulation);
    const laws::Program happened = traced(p);
    if (world_.rank() != 0) return;
    const auto table = laws::model_law(p.training.model.name).table(p.training.model.options);
    const laws::Program expected =
        laws::strategy_law(p.training.strategy.name).program(laws::cost_input(p, table));
    EXPECT_EQ(to_text(happened), to_text(expected)) << what;
    EXPECT_EQ(laws::program_of(laws::to_series(happened)), happened) << what;
  }

  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> inner_ = make_communicator("mpi", world_, at::kCPU);
};

TEST_F(StepProgram, IsWhatHappens) {
  std::vector<std::string> strategies = kStrategies;
  if (world_.size() % 2 == 0) strategies.insert(strategies.end(), kInTwos.begin(), kInTwos.end());
  for (const auto& model : kModels)
    for (const auto& strategy : strategies)
      for (const int64_t accumulation : {1, 3}) {
        Point p = point(model, strategy);
        p.training.accumulation = accumulation;
        check(p);
      }
}

TEST_F(StepProgram, ClippedAndInMixedPrecision) {
  for (const std::string strategy :
       {"ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "zero3"})
    for (const std::string reduce : {"same", "fp32"}) {
      Point p = point(kModels[1], strategy);
      p.training.precision = "bf16";
      p.training.reduce_dtype = reduce;
      p.training.clip_norm = 1;
      p.training.accumulation = 2;
      check(p);
    }
}

// The times of moments are those between them: nothing is counted twice, and a block takes some time.
TEST_F(StepProgram, MomentsTakeTime) {
  MomentTimer timer(at::kCPU);
  using What = laws::Moment::What;
  for (int i = 0; i < 3; ++i) {
    timer.at(What::data, 0);
    timer.at(What::forward, 0);
    timer.at(What::forward, 1);
    timer.at(What::backward, 1);
    timer.at(What::backward, 0);
    timer.at(What::update, 0);
    timer.end_step();
  }
  const auto medians = timer.medians(2);
  ASSERT_EQ(medians.size(), 6);
  for (const double seconds : medians) EXPECT_GT(seconds, 0);
}

}  // namespace
}  // namespace shardmark
