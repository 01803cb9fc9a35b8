// The CPU reads checkpoints that a GPU has written, bit by bit, and vice versa, in every precision and under
// every kind of strategy. A run that resumes on the other device has the same loss curve.
#include <unistd.h>

#include <filesystem>

#include "tests/gpu/gpu_fixture.h"
#include "tests/gpu/point_on_gpu.h"
#include "tests/mpi/strategy_cases.h"
#include "train/run.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

constexpr const char* kResNet = "resnet(layers=20, width=3, image=9, batch_norm=local)";  // has buffers

// A model in training, on either device.
class Trained {
 public:
  Trained(Point point, int64_t seed, Communicator& comm, int64_t num_steps = 0)
      : comm_(comm), point_(std::move(point)), num_steps_(num_steps) {
    point_.seed = seed;
    setup_ = std::make_unique<TrainingSetup>(point_, comm);
    setup_->allocate();
    setup_->state->publish();
    const auto& t = point_.training;
    source_ = make_source(t.data, {setup_->model->table().sample, setup_->model->dtype(), 7});
  }
  double step() {
    const DistributedSampler sampler(source_->size(), comm_.size(), comm_.rank(), 2, 1, 7);
    Loader loader(*source_, sampler, comm_.device(), 0, num_steps_++);
    const at::Tensor loss = setup_->executor->step([&] { return loader.next(); }).loss;
    if (setup_->executor->failure()) std::rethrow_exception(setup_->executor->failure());
    const at::Tensor sum = loss.to(at::kDouble).view({1});
    comm_.all_reduce(sum, ReduceOp::sum).wait();
    return sum.item<double>() / comm_.size();
  }
  int64_t num_steps() const { return num_steps_; }
  std::string write(const std::string& path) {
    return write_state(path, *setup_, State::all, {}, comm_.rank() == 0);
  }
  void load(const std::string& path) {
    std::optional<SafetensorsFile> file;
    if (comm_.rank() == 0) file.emplace(path);
    load_state(*setup_, comm_, State::all, file ? &*file : nullptr);
  }

 private:
  Communicator& comm_;
  Point point_;
  std::unique_ptr<TrainingSetup> setup_;
  std::unique_ptr<DataSource> source_;
  int64_t num_steps_;
};

class CheckpointsOnGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    folder_ = "/tmp/shardmark-gpu-" + world_.broadcast(std::to_string(::getpid()), 0);
    if (world_.rank() == 0) fs::create_directories(folder_);
    world_.barrier();
  }
  void TearDown() override {
    if (folder_.empty()) return;
    world_.barrier();
    if (world_.rank() == 0) fs::remove_all(folder_);
  }

  // Compares two files on rank 0.
  void expect_same_file(const std::string& actual, const std::string& expected) const {
    if (world_.rank() != 0) return;
    const SafetensorsFile a(actual), e(expected);
    ASSERT_EQ(a.entries().size(), e.entries().size());
    for (const auto& [name, entry] : e.entries()) EXPECT_TRUE(a.read(name).equal(e.read(name))) << name;
  }

  // Trains on `from`, loads the state on `to` with another strategy, and writes it from there. Then both run
  // two more steps.
  void expect_round_trip(const Point& point, const std::string& other, Communicator& from, Communicator& to,
                         double tolerance) const {
    const std::string first = folder_ + "/first.safetensors", second = folder_ + "/second.safetensors";
    Trained trained(point, 7, from);
    for (int step = 0; step < 3; ++step) trained.step();
    EXPECT_EQ(trained.write(first), "");
    world_.barrier();
    Point elsewhere = point;
    elsewhere.training.strategy = resolved_strategy(other);
    Trained resumed(elsewhere, 8, to, trained.num_steps());  // with different initial values
    resumed.load(first);
    EXPECT_EQ(resumed.write(second), "");
    world_.barrier();
    expect_same_file(second, first);
    for (int step = 0; step < 2; ++step) {
      const double expected = trained.step();
      EXPECT_NEAR(resumed.step(), expected, tolerance * std::abs(expected));
    }
    world_.barrier();
  }

  std::string folder_;
};

TEST_F(CheckpointsOnGpu, GoBetweenGpuAndCpu) {
  size_t other = 1;
  for (const auto& strategy : kKinds) {
    for (const auto& [precision, tolerance] : {std::pair("fp64", 1e-9), std::pair("fp32", 1e-4),
                                               std::pair("bf16", 2e-2), std::pair("fp16", 2e-2)}) {
      if (is_emulated() && (precision == std::string("fp32") || precision == std::string("bf16"))) continue;
      const std::string& model = precision == std::string("fp32") ? kResNet : kModels[1];
      const Point point = training_point(model, strategy, comm_->size(), 2, precision);
      const std::string& under = kKinds[other++ % kKinds.size()];
      SCOPED_TRACE(strategy + " then " + under + " " + precision);
      expect_round_trip(point, under, *comm_, *cpu_comm_, tolerance);
      expect_round_trip(point, under, *cpu_comm_, *comm_, tolerance);
    }
  }
}

// Optimizer moments in host memory are loaded into GPU memory, and vice versa.
TEST_F(CheckpointsOnGpu, OfOffloadedState) {
  for (const std::string strategy : {"fsdp(offload=optimizer)", "zero3(persistence=30, offload=optimizer)"}) {
    const Point point = training_point(kModels[1], strategy, comm_->size(), 2, "bf16");
    expect_round_trip(point, "ddp", *comm_, *comm_, 2e-2);
    expect_round_trip(training_point(kModels[1], "ddp", comm_->size(), 2, "bf16"), strategy, *comm_, *comm_,
                      2e-2);
    expect_round_trip(point, strategy, *comm_, *cpu_comm_, 2e-2);
  }
}

// Trains as `shardmark train` does. The second half of a run on the other device has the same curve.
TEST_F(CheckpointsOnGpu, LetARunGoOnOnTheOtherDevice) {
  constexpr int64_t kSteps = 6;
  const auto run = [&](Communicator& comm, const std::string& strategy, const std::string& directory,
                       const Start& start) {
    Point point = training_point(kModels[1], strategy, comm.size(), 2, "fp64");
    point.workload = "train";
    const auto sample = specs::model_spec("gpt2").table(point.training.model.options).sample;
    const auto source = make_source(point.training.data, {sample, at::kDouble, 3, /*holds_out=*/true});
    TrainingOptions options{point, LRScheduler({"cosine"}, 0.01, 2, kSteps)};
    options.num_steps = kSteps;
    options.run.eval_every = 3;
    options.run.checkpoint = directory;
    options.run.checkpoint_every = directory.empty() ? 0 : kSteps / 2;
    HeartbeatPage page{};
    Heartbeat heartbeat(page);
    TrainingSetup setup(options.point, comm);
    shardmark::Run training(options, start, world_, setup, Resources{}, *source, heartbeat);
    training.load(start);
    return training.train();
  };
  for (const bool begins_on_gpu : {true, false}) {
    Communicator& first = begins_on_gpu ? *comm_ : *cpu_comm_;
    Communicator& second = begins_on_gpu ? *cpu_comm_ : *comm_;
    const std::string directory = folder_ + (begins_on_gpu ? "/gpu" : "/cpu");
    Start start;
    if (world_.rank() == 0) start.directory = Checkpoints(directory).claim();
    world_.barrier();
    const Record whole = run(first, "fsdp", directory, {});
    ASSERT_EQ(whole.outcome, Outcome::ok) << whole.reason;
    world_.barrier();
    if (world_.rank() == 0) {
      fs::remove(directory + "/step-000000006.safetensors");
      start.file = Checkpoints(directory).newest();
      ASSERT_TRUE(start.file);
      EXPECT_EQ(step_of(*start.file), kSteps / 2);
    }
    start.what = State::all;
    start.loads = true;
    start.step = kSteps / 2;
    const Record rest = run(second, "zero3", "", start);
    ASSERT_EQ(rest.outcome, Outcome::ok) << rest.reason;
    if (world_.rank() != 0) continue;
    for (const char* name : {"loss", "held_out_loss"}) {
      const Series &all = *whole.series(name), &half = *rest.series(name);
      ASSERT_GT(half.columns, 0);
      for (int64_t i = 0; i < half.columns; ++i) {
        const double expected = all.at(0, all.columns - half.columns + i);
        EXPECT_NEAR(half.at(0, i), expected, 1e-9 * std::abs(expected)) << name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace shardmark
