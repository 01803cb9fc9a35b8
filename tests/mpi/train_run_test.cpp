// Tests training runs: the curves are the same under every strategy and number of ranks, and checkpoints can
// be resumed with other ones.
// RANKS 1 2 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "executor/precision.h"
#include "tests/mpi/training_fixture.h"
#include "train/run.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGlobalBatch = 8;

struct Task {
  std::string model, optimizer;
  int64_t num_steps;
  std::string precision = "fp64";
};

class TrainingRuns : public ::testing::Test {
 protected:
  TrainingRuns() { at::set_num_threads(1); }

  TrainingOptions options(const Task& task, const std::string& strategy, const Communicator& comm,
                          const DataSource& source) const {
    Point point;
    point.workload = "train";
    point.ranks = comm.size();
    point.seed = 3;
    auto& t = point.training;
    t.model = resolved_model(task.model);
    t.data = data_;
    t.strategy = resolved_strategy(strategy);
    t.optimizer = resolved_optimizer(task.optimizer);
    t.precision = task.precision;
    t.batch_size = kGlobalBatch / comm.size();
    TrainingOptions options{
        point, LRScheduler({"cosine"}, t.optimizer.options.at("lr").get<double>(), 2, task.num_steps)};
    options.num_steps = task.num_steps;
    options.run.eval_every = 3;
    options.identity = {to_text(t.model), to_text(t.data), t.optimizer.name, 2,
                        point.seed,       kGlobalBatch,    source.size()};
    return options;
  }

  std::unique_ptr<DataSource> source(const Task& task) const {
    const Choice model = resolved_model(task.model);
    const auto sample = specs::model_spec(model.name).table(model.options).sample;
    return make_source(data_,
                       {sample, precision_from(task.precision, "same").compute, 3, /*holds_out=*/true});
  }

  // change: modifies the options.
  Record train(const Task& task, const std::string& strategy, const HostGroup& group, Communicator& comm,
               const Start& start = {}, const std::function<void(TrainingOptions&)>& change = {}) const {
    const auto data = source(task);
    TrainingOptions run_options = options(task, strategy, comm, *data);
    if (change) change(run_options);
    HeartbeatPage page{};
    Heartbeat heartbeat(page);
    TrainingSetup setup(run_options.point, comm);
    const Resources resources;
    shardmark::Run run(run_options, start, group, setup, resources, *data, heartbeat);
    run.load(start);
    return run.train();
  }

  const Choice data_ = {"synthetic", {{"size", 50}}};
  HostGroup world = HostGroup::world();
  HostGroup mine = world.split(world.rank(), 0);
  std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
  std::unique_ptr<Communicator> alone = make_communicator("pt2pt", mine, at::kCPU);
};

const std::vector<Task> kTasks = {
    {"gpt2(layers=2, width=24, heads=3, sequence=11, vocabulary=37)", "adamw(lr=0.01)", 8},
    {"resnet(layers=20, width=4, batch_norm=sync)", "sgd(lr=0.01, momentum=0.9)", 6},
    {"mlp(features=13, width=19, layers=3, classes=5)", "sgd(lr=0.1)", 8},
};
const std::vector<std::string> kStrategies = {"ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)",
                                              "zero3"};

void expect_same_curve(const Record& actual, const Record& expected, const std::string& series) {
  const Series* a = actual.series(series);
  const Series* e = expected.series(series);
  ASSERT_TRUE(a != nullptr && e != nullptr) << series;
  ASSERT_GE(e->columns, a->columns) << series;
  const int64_t before = e->columns - a->columns;  // steps that the resumed run does not repeat
  for (int64_t i = 0; i < a->columns; ++i)
    EXPECT_NEAR(a->at(0, i), e->at(0, before + i), 1e-9 * std::abs(e->at(0, before + i)))
        << series << " " << i;
}

TEST_F(TrainingRuns, HaveTheSameCurvesUnderEveryStrategy) {
  for (const Task& task : kTasks) {
    const Record single = train(task, "single", mine, *alone);
    ASSERT_EQ(single.outcome, Outcome::ok) << single.reason;
    EXPECT_GT(std::abs(single.measures.loss_last - single.measures.loss_first), 0.01) << "nothing moves";
    for (const auto& strategy : kStrategies) {
      SCOPED_TRACE(task.model + " " + strategy);
      const Record run = train(task, strategy, world, *comm);
      if (world.rank() != 0) continue;
      for (const char* series : {"loss", "learning_rate", "gradient_norm", "held_out_loss", "accuracy"})
        expect_same_curve(run, single, series);
    }
  }
}

TEST_F(TrainingRuns, GoOnFromCheckpointsUnderAnotherStrategyAndRanks) {
  const std::string folder = "/tmp/shardmark-runs-" + world.broadcast(std::to_string(::getpid()), 0);
  for (size_t i = 0; i < kStrategies.size(); ++i) {
    const Task& task = kTasks[i % 2];
    const std::string directory = folder + "/" + std::to_string(i);
    const Checkpoints checkpoints(directory);
    if (world.rank() == 0) checkpoints.claim();
    const Record whole = train(task, kStrategies[i], world, *comm, {}, [&](TrainingOptions& options) {
      options.run.checkpoint = directory;
      options.run.checkpoint_every = 2;
    });
    if (world.rank() == 0) {
      const auto files = std::distance(fs::directory_iterator(directory), fs::directory_iterator());
      EXPECT_EQ(files, 2) << "the last two are kept";
      fs::remove(directory + "/step-00000000" + std::to_string(task.num_steps) + ".safetensors");

      Start start;
      start.file = checkpoints.newest();
      ASSERT_TRUE(start.file);
      start.step = step_of(*start.file);
      EXPECT_EQ(start.step, task.num_steps - 2);
      start.what = State::all;
      start.loads = true;
      check_identity(*start.file, options(task, "single", *alone, *source(task)).identity);
      const Record rest = train(task, "single", mine, *alone, start);
      EXPECT_EQ(rest.measures.first_step, start.step);
      for (const char* series : {"loss", "learning_rate", "held_out_loss"})
        expect_same_curve(rest, whole, series);
    }
    world.barrier();
  }
  if (world.rank() == 0) fs::remove_all(folder);
}

TEST_F(TrainingRuns, TwoRunsAreBitEqual) {
  const Task& task = kTasks[0];
  const Record first = train(task, "fsdp", world, *comm), second = train(task, "fsdp", world, *comm);
  if (world.rank() != 0) return;
  for (const char* series : {"loss", "gradient_norm", "held_out_loss"})
    EXPECT_EQ(first.series(series)->values, second.series(series)->values) << series;
}

TEST_F(TrainingRuns, StopAtALossThatIsNotFinite) {
  Task task = kTasks[2];
  task.optimizer = "sgd(lr=1e30, momentum=0)";
  const Record run = train(task, "fsdp", world, *comm, {}, [](TrainingOptions& o) { o.run.log_every = 4; });
  EXPECT_EQ(run.outcome, Outcome::failed);
  EXPECT_NE(run.reason.find("not finite: step"), std::string::npos) << run.reason;
}

// The last update may make the parameters non-finite. No later loss shows that.
TEST_F(TrainingRuns, WriteNothingThatIsNotFinite) {
  const std::string folder = "/tmp/shardmark-nan-" + world.broadcast(std::to_string(::getpid()), 0);
  if (world.rank() == 0) fs::create_directories(folder);
  world.barrier();
  const auto files_of = [&](const std::string& optimizer, int64_t evaluate_batches,
                            const std::string& reason) {
    Task task = kTasks[2];
    task.precision = "fp32";
    task.optimizer = optimizer;
    const Record run = train(task, "zero3", world, *comm, {}, [&](TrainingOptions& options) {
      options.num_steps = 1;
      options.run.eval_batches = evaluate_batches;
      options.run.checkpoint = folder;
      options.run.checkpoint_every = 1;
      options.run.save_weights = folder + "/weights";
    });
    EXPECT_EQ(run.outcome == Outcome::ok, reason.empty()) << run.reason;
    EXPECT_NE(run.reason.find(reason), std::string::npos) << run.reason;
    world.barrier();
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  };
  EXPECT_EQ(files_of("adamw(lr=1e30, weight_decay=1e30)", 0, "not finite after step 1"), 0);
  EXPECT_EQ(files_of("sgd(lr=1e30, momentum=0)", 1, "the held-out loss is not finite: step 1"), 0);
  EXPECT_EQ(files_of("sgd(lr=1e-3, momentum=0)", 1, ""), 2);
  world.barrier();
  if (world.rank() == 0) fs::remove_all(folder);
}

}  // namespace
}  // namespace shardmark
