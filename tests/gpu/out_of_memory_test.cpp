// If a GPU runs out of memory, by a limit or for real, that is the outcome of the point on all ranks. The
// next point is measured as if nothing had happened.
#include "sweep/measure.h"
#include "sweep/verdict.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/gpu/point_on_gpu.h"

namespace shardmark {
namespace {

// The logits of a sample take 64 x 50257 x 4 bytes = 12.9 MB.
constexpr const char* kModel = "gpt2(layers=1, width=64, heads=2, sequence=64, vocabulary=50257)";
constexpr int64_t kSampleBytes = int64_t{64} * 50257 * 4;
constexpr int64_t kGib = int64_t{1} << 30;

class OutOfMemoryOnGpu : public GpuTest {
 protected:
  void TearDown() override {
    if (comm_ == nullptr) return;
    meter::set_limit(0);
    meter::take_excess();
    empty_caches(device_);
  }

  Record measure(const std::string& model, const std::string& strategy, int64_t batch_size) {
    const Point point = training_point(model, strategy, comm_->size(), batch_size);
    return measure_point(surroundings_.of(point, world_, *comm_));
  }
  void expect_out_of_memory(const Record& record) {
    EXPECT_EQ(record.outcome, Outcome::out_of_memory) << to_text(record.outcome) << ": " << record.reason;
    EXPECT_FALSE(record.reason.empty());
  }
  void expect_next_point_works() {
    for (const auto* strategy : {"single", "fsdp"}) {
      const Record record = measure(kModel, strategy, 2);
      EXPECT_EQ(record.outcome, Outcome::ok) << strategy << ": " << record.reason;
      if (world_.rank() == 0) {
        EXPECT_GT(record.measures.step_s, 0) << strategy;
        EXPECT_EQ(record.measures.verified, "equal to one device") << strategy;
      }
    }
  }

  DecisionInputs surroundings_;
};

// Memory runs out in the middle of a step, after other blocks have computed. The rank still goes through the
// rest of the step.
TEST_F(OutOfMemoryOnGpu, IsAnOutcomeInAStep) {
  const int64_t batch_size =
      2 * device_memory_bytes(device_) / kSampleBytes;  // logits of twice the memory of the device
  for (const auto* strategy : {"single", "ddp", "fsdp", "zero3"}) {
    SCOPED_TRACE(strategy);
    const Record record = measure(kModel, strategy, batch_size);
    expect_out_of_memory(record);
  }
  expect_next_point_works();
}

TEST_F(OutOfMemoryOnGpu, IsAnOutcomeInSetUp) {
  for (const auto* strategy : {"single", "fsdp"}) {
    SCOPED_TRACE(strategy);
    meter::set_limit(kGib);  // 3 x 16384^2 parameters take 3.2 GB
    const Record record = measure("mlp(features=8, width=16384, layers=5, classes=8)", strategy, 1);
    expect_out_of_memory(record);
    meter::set_limit(0);
  }
  expect_next_point_works();
}

// The limit is below the memory of the device, and PyTorch's allocator respects it, too.
TEST_F(OutOfMemoryOnGpu, ComesAtTheLimit) {
  meter::set_limit(kGib);
  expect_out_of_memory(measure(kModel, "ddp", 2 * kGib / kSampleBytes));
  expect_next_point_works();  // with the same limit
}

// The limit applies to the sum of PyTorch's and NCCL's memory. What one of them has, the other cannot get.
TEST_F(OutOfMemoryOnGpu, ComesAtOneLimitForTorchAndNccl) {
  empty_caches(device_);
  const int64_t before = meter::read().total, most = before + kGib;
  const auto bytes = at::TensorOptions(device_).dtype(at::kByte);
  const auto torch_takes = [&](int64_t count) { return attempt([&] { at::empty({count}, bytes); }).outcome; };
  meter::set_limit(most);
  {
    const at::Tensor registered = comm_->allocate(3 * kGib / 4, at::kByte);
    EXPECT_EQ(torch_takes(kGib / 8), Outcome::ok);
    EXPECT_EQ(torch_takes(kGib / 2), Outcome::out_of_memory) << "NCCL holds three quarters";
  }
  EXPECT_EQ(torch_takes(kGib / 2), Outcome::ok) << "NCCL has given them back";
  {
    const at::Tensor torchs = at::empty({3 * kGib / 4}, bytes);
    const auto nccl_takes = [&] {
      const meter::Strict strict;
      static_cast<void>(comm_->allocate(kGib / 2, at::kByte));
    };
    EXPECT_EQ(attempt(nccl_takes).outcome, Outcome::out_of_memory) << "torch holds three quarters";
  }
  EXPECT_EQ(meter::read().total, before);
  meter::set_limit(0);
  EXPECT_EQ(torch_takes(2 * kGib), Outcome::ok) << "no limit holds any more";
}

// Memory runs out on one rank only, and all ranks agree on that outcome.
TEST_F(OutOfMemoryOnGpu, OfOneRankIsThatOfAll) {
  const bool is_last = comm_->rank() == comm_->size() - 1;
  const Verdict verdict = agreed(world_, surroundings_.heartbeat, "test", [&] {
    const int64_t bytes = is_last ? 2 * device_memory_bytes(device_) : 512;
    at::empty({bytes}, at::TensorOptions(device_).dtype(at::kByte));
  });
  EXPECT_EQ(verdict.outcome, Outcome::out_of_memory);
  EXPECT_NE(verdict.reason.find("rank " + std::to_string(comm_->size() - 1)), std::string::npos)
      << verdict.reason;
}

// Memory from ncclMemAlloc is outside of PyTorch's allocator.
TEST_F(OutOfMemoryOnGpu, OfRegisteredMemoryIsAnOutcome) {
  const int64_t before = meter::read().total;
  const Verdict verdict =
      attempt([&] { static_cast<void>(comm_->allocate(2 * device_memory_bytes(device_) / 4, at::kFloat)); });
  EXPECT_EQ(verdict.outcome, Outcome::out_of_memory) << verdict.reason;
  EXPECT_EQ(meter::read().total, before);
  const at::Tensor small = comm_->allocate(1000, at::kFloat);
  small.fill_(1);
  comm_->all_reduce(small, ReduceOp::sum).wait();
  EXPECT_EQ(small.sum().item<double>(), 1000.0 * comm_->size());
}

}  // namespace
}  // namespace shardmark
