// Phases are timed with events on a GPU's stream. They add up to the wall time of a window, and they show
// what the GPU did instead of when the host enqueued it.
#include <numeric>

#include "sweep/window.h"
#include "sweep/workloads/training.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/gpu/point_on_gpu.h"

namespace shardmark {
namespace {

class PhasesOnGpu : public GpuTest {
 protected:
  // Enqueues this many matrix products one after the other.
  void work(int64_t times) const {
    for (int64_t i = 0; i < times; ++i) at::mm_out(product_, factor_, factor_);
  }
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    factor_ = at::rand({2048, 2048}, at::TensorOptions(device_));
    product_ = at::empty_like(factor_);
    work(20);
    synchronize(device_);
  }
  void TearDown() override {
    if (comm_ != nullptr) comm_->set_timeline(nullptr);  // the recorder is destroyed with the test
  }

  // Returns a step with one instruction of each part.
  static strategies::Program program() {
    using strategies::StepPart;
    strategies::Program program;
    for (const StepPart part : {StepPart::data, StepPart::forward, StepPart::backward, StepPart::update})
      program.instructions.push_back({.part = part});
    return program;
  }

  const strategies::Program program_ = program();
  mutable at::Tensor factor_, product_;
};

// The host enqueues all of the work almost at once.
TEST_F(PhasesOnGpu, AreWhatTheGpuDid) {
  StepRecorder recorder(device_);
  double best = HUGE_VAL;  // the best of several attempts, because other work may disturb one
  for (int turn = 0; turn < 5; ++turn) {
    recorder.begin_step(program_);
    size_t i = 0;
    for (const int64_t times : {0, 50, 150, 0}) {
      recorder.begin_instruction(i++);
      work(times);
    }
    recorder.end();
    const auto steps = recorder.take();
    ASSERT_EQ(steps.size(), 1);
    const auto phases = steps[0].phases();
    const auto of = [&](Phase phase) { return phases[static_cast<size_t>(phase)]; };
    EXPECT_GT(of(Phase::forward), of(Phase::data) + of(Phase::optimizer));
    best = std::min(best, std::abs(of(Phase::backward) / of(Phase::forward) - 3));
  }
  EXPECT_LE(best, is_emulated() ? 1.5 : 0.3);  // two ranks share one GPU
}

// Several steps without a wait of the host in between, and again after their times were read.
TEST_F(PhasesOnGpu, OfManyStepsAddUpToTheWallTime) {
  StepRecorder recorder(device_);
  double best = HUGE_VAL;
  for (int turn = 0; turn < 5; ++turn) {
    synchronize(device_);
    const double begin_s = now_s();
    for (int step = 0; step < 10; ++step) {
      recorder.begin_step(program_);
      for (size_t i = 0; i < program_.instructions.size(); ++i) {
        recorder.begin_instruction(i);
        work(20);
      }
    }
    recorder.end();
    const auto steps = recorder.take();
    const double wall_s = now_s() - begin_s;
    ASSERT_EQ(steps.size(), 10);
    double sum_s = 0;
    for (const RecordedStep& step : steps) sum_s += step.seconds();
    EXPECT_LE(sum_s, 1.01 * wall_s);
    best = std::min(best, 1 - sum_s / wall_s);
  }
  EXPECT_LE(best, 0.05);
}

// Time in which the stream waits for another rank is exposed communication.
TEST_F(PhasesOnGpu, WaitsOfTheStreamAreExposed) {
  if (comm_->size() == 1) GTEST_SKIP() << "nobody to wait for";
  StepRecorder recorder(device_);
  comm_->set_timeline(&recorder.timeline());
  const at::Tensor tensor = comm_->allocate(1 << 24, at::kFloat);
  for (int step = 0; step < 5; ++step) {
    recorder.begin_step(program_);
    recorder.begin_instruction(0);
    comm_->all_reduce(tensor, ReduceOp::sum).wait();
  }
  recorder.end();
  double exposed_s = 0, all_s = 0;
  for (const RecordedStep& step : recorder.take()) {
    exposed_s += step.phases()[static_cast<size_t>(Phase::exposed)];
    all_s += step.seconds();
  }
  EXPECT_GT(exposed_s, 0.5 * all_s);
}

// Checks a window of the training workload as the sweep does. It uses the best of several windows, because
// the host may be late at the end of a window if the machine is busy.
TEST_F(PhasesOnGpu, OfAWindowAddUpToItsWallTime) {
  for (const auto* strategy : {"single", "ddp", "fsdp", "zero3"}) {
    SCOPED_TRACE(strategy);
    const Point point = training_point("gpt2(layers=4, width=256, heads=4, sequence=128, vocabulary=1000)",
                                       strategy, comm_->size(), 4, "fp32");
    DecisionInputs surroundings;
    const WorkloadContext context = surroundings.of(point, world_, *comm_);
    const auto training = make_training(context);
    training->allocate();
    const Check check = training->verify();
    EXPECT_FALSE(check.wrong) << check.text;
    WindowTimer timer(context, *training);
    const int64_t num_steps = is_emulated() ? 3 : 20;
    bool accounted = false;
    for (int turn = 0; turn < 5; ++turn) {
      Window window;
      const Verdict verdict = timer.run(num_steps, window);
      ASSERT_TRUE(verdict.ok()) << verdict.reason;
      ASSERT_EQ(window.phases.size(), 1 + kNumPhases);
      const auto& steps = window.phases[0];
      ASSERT_EQ(std::ssize(steps), num_steps);
      for (size_t step = 0; step < steps.size(); ++step) {
        double sum_s = 0;
        for (size_t phase = 1; phase < window.phases.size(); ++phase) {
          EXPECT_GE(window.phases[phase][step], 0);
          sum_s += window.phases[phase][step];
        }
        EXPECT_NEAR(sum_s, steps[step], 1e-6 * steps[step]);
      }
      const double timed_s = std::accumulate(steps.begin(), steps.end(), 0.0);
      EXPECT_LE(timed_s, 1.01 * window.wall_s + 2e-4);
      accounted |= is_accounted(timed_s, window.wall_s);
    }
    EXPECT_TRUE(accounted) << "steps do not add up to the wall time of any window";
  }
}

}  // namespace
}  // namespace shardmark
