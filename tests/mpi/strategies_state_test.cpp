// A training state that was written under one strategy can be resumed under any other strategy, also with
// fewer ranks.
// RANKS 1 2 3 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "executor/training_state.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

constexpr int64_t kSamples = 12;  // samples of a global batch, divisible by 1, 2, 3 and 4 ranks
constexpr int64_t kSeed = 7;

// A training run that can be stopped and resumed.
class Job {
 public:
  Job(const std::string& model, const std::string& strategy, const std::string& optimizer, Communicator& comm,
      int64_t seed)
      : comm_(comm),
        model_(make_model(resolved_model(model), at::kDouble, comm.device())),
        training_(make_state({*model_, comm, resolved_optimizer(optimizer), seed}, strategy)),
        source_(make_source({"synthetic", {{"size", 64}}}, {model_->table().sample, at::kDouble, kSeed})),
        sampler_(source_->size(), comm.size(), comm.rank(), kSamples / comm.size(), 1, kSeed),
        guard_(0, false, comm.device()),
        executor_(training_, guard_, seed) {
    training_.publish();
  }

  double step() {  // returns the loss
    const at::Tensor loss = executor_.step([&] { return source_->fetch(sampler_.draw(num_steps_, 0)); }).loss;
    ++num_steps_;
    if (executor_.failure()) std::rethrow_exception(executor_.failure());
    comm_.all_reduce(loss.view({1}), ReduceOp::sum).wait();
    return loss.item<double>() / comm_.size();
  }

  Tensors state() {  // empty except on rank 0
    Tensors tensors;
    const StateVisitor keep = [&](const std::string& name, const at::Tensor& value) {
      EXPECT_TRUE(tensors.emplace(name, value).second) << name;
    };
    training_.visit(State::all, comm_.rank() == 0 ? keep : StateVisitor{});
    return tensors;
  }

  void load(const Tensors& tensors, int64_t num_steps) {
    const StateReader read = [&](const std::string& name) { return tensors.at(name); };
    training_.load(State::all, comm_.rank() == 0 ? read : StateReader{});
    num_steps_ = num_steps;
  }
  void load_carried(const Tensors& tensors) {
    const StateReader read = [&](const std::string& name) { return tensors.at(name); };
    training_.load_carried(comm_.rank() == 0 ? read : StateReader{});
  }

 private:
  Communicator& comm_;
  std::unique_ptr<Model> model_;
  TrainingState training_;
  std::unique_ptr<DataSource> source_;
  DistributedSampler sampler_;
  GradientGuard guard_;
  Executor executor_;
  int64_t num_steps_ = 0;
};

// The models have shapes that no number of ranks divides, fewer tensors than ranks for zero3, and running
// statistics.
const std::vector<std::string> kStateModels = {
    "gpt2(layers=1, width=24, heads=3, sequence=11, vocabulary=37)", "mlp(features=13, layers=1, classes=5)",
    "resnet(layers=20, width=3, batch_norm=frozen)"};
const std::vector<std::string> kStateOptimizers = {"sgd(lr=0.05, momentum=0.9)", "sgd(lr=0.05, momentum=0)",
                                                   "adamw(lr=0.001)"};

class StrategiesState : public ::testing::Test {
 protected:
  StrategiesState() {
    at::set_num_threads(1);
    if (world.size() % 2 == 0)
      strategies.emplace_back("fsdp(group=2)");  // with 4 ranks, this has two replicas
  }
  HostGroup world = HostGroup::world();
  std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
  std::vector<std::string> strategies = {
      "ddp",   "fsdp",          "fsdp(shard=gradients)", "fsdp(shard=optimizer)",
      "zero3", "fsdp(group=1)", "zero3(evenness=count)"};
};

void expect_equal(const Tensors& actual, const Tensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, value] : expected) EXPECT_TRUE(at::equal(actual.at(name), value)) << name;
}

TEST_F(StrategiesState, GoesOnUnderAnyOther) {
  for (size_t i = 0; i < 2 * strategies.size(); ++i) {
    const std::string& model = kStateModels[i % kStateModels.size()];
    const std::string& optimizer = kStateOptimizers[i / kStateModels.size() % kStateOptimizers.size()];
    const std::string& strategy = strategies[i % strategies.size()];
    Job run(model, strategy, optimizer, *comm, kSeed);
    for (int step = 0; step < 3; ++step) run.step();
    const Tensors state = run.state();
    const std::vector<double> losses = {run.step(), run.step()};

    const std::string& other = strategies[(i + 1 + i / strategies.size()) % strategies.size()];
    SCOPED_TRACE(model + " " + optimizer + " " + strategy + " then " + other);
    Job resumed(model, other, optimizer, *comm, kSeed + 1);  // with different initial values
    resumed.load(state, 3);
    expect_equal(resumed.state(), state);
    for (const double loss : losses) EXPECT_NEAR(resumed.step(), loss, 1e-10);
  }
}

TEST_F(StrategiesState, GoesOnWithFewerRanks) {
  if (comm->size() == 1) GTEST_SKIP() << "needs two ranks";
  const auto fewer = comm->split(comm->rank() < comm->size() - 1 ? 0 : -1, comm->rank());
  for (const auto& strategy : strategies) {
    SCOPED_TRACE(strategy);
    Job run(kStateModels[0], strategy, kStateOptimizers[2], *comm, kSeed);
    for (int step = 0; step < 3; ++step) run.step();
    const Tensors state = run.state();
    const double loss = run.step();
    if (!fewer) continue;
    Job resumed(kStateModels[0], fewer->size() == 1 ? "single" : "fsdp", kStateOptimizers[2], *fewer,
                kSeed + 1);
    resumed.load(state, 3);
    expect_equal(resumed.state(), state);
    EXPECT_NEAR(resumed.step(), loss, 1e-10);
  }
}

// Gradients that a rank has not sent yet are part of the state, so the resumed run is bitwise equal.
TEST_F(StrategiesState, CarriesOverWhatReductionsHoldBack) {
  for (const std::string reduction : {"topk(ratio=0.05)", "powersgd(rank=1)"}) {
    SCOPED_TRACE(reduction);
    const std::string strategy = "ddp(bucket_mb=0.02, first_bucket_mb=0.01, reduction=" + reduction + ")";
    Job run(kStateModels[0], strategy, kStateOptimizers[2], *comm, kSeed);
    for (int step = 0; step < 3; ++step) run.step();
    const Tensors state = run.state();
    for (int step = 0; step < 2; ++step) run.step();
    const Tensors expected = run.state();

    Job resumed(kStateModels[0], strategy, kStateOptimizers[2], *comm, kSeed + 1);
    Job empty(kStateModels[0], strategy, kStateOptimizers[2], *comm, kSeed + 1);
    for (Job* job : {&resumed, &empty}) job->load(state, 3);
    resumed.load_carried(state);
    for (int step = 0; step < 2; ++step) {
      resumed.step();
      empty.step();
    }
    expect_equal(resumed.state(), expected);
    const Tensors other = empty.state();
    if (comm->rank() != 0) continue;
    EXPECT_FALSE(at::equal(other.at("wte.weight"), expected.at("wte.weight"))) << "nothing was held back";
  }
}

TEST_F(StrategiesState, BuffersFollowRankZero) {
  const auto model =
      make_model(resolved_model("resnet(layers=20, width=3, batch_norm=local)"), at::kFloat, at::kCPU);
  for (const auto& [name, value] : model->buffers()) value.fill_(comm->rank() + 5);
  broadcast_buffers(*model, *comm);
  for (const auto& [name, value] : model->buffers()) EXPECT_TRUE(value.eq(5).all().item<bool>()) << name;
}

}  // namespace
}  // namespace shardmark
