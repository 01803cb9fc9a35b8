// The loader gives a GPU the same batches as the CPU, with and without its thread, while the GPU is far
// behind the host.
#include "data/loader.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

constexpr int64_t kAccumulation = 2;
constexpr int64_t kNumBatches = 40;

class LoaderOnGpu : public GpuTest {
 protected:
  struct Data {
    std::unique_ptr<DataSource> source;
    DistributedSampler sampler;
  };
  Data data(const std::string& model, at::ScalarType dtype) const {
    const Choice choice = resolved_model(model);
    const auto sample = specs::model_spec(choice.name).table(choice.options).sample;
    auto source = make_source({"synthetic", {{"size", 64}}}, {sample, dtype, 7});
    const int64_t size = source->size();
    return {std::move(source), DistributedSampler(size, comm_->size(), comm_->rank(), 3, kAccumulation, 7)};
  }
  void expect_same(const Batch& on_gpu, const Batch& on_cpu, int64_t position) const {
    EXPECT_EQ(on_gpu.inputs.device(), device_);
    EXPECT_TRUE(on_gpu.inputs.cpu().equal(on_cpu.inputs)) << "batch " << position;
    EXPECT_TRUE(on_gpu.targets.cpu().equal(on_cpu.targets)) << "batch " << position;
  }
};

TEST_F(LoaderOnGpu, GivesTheBatchesOfTheCpu) {
  for (const auto* model : {"mlp(features=13)", "gpt2(sequence=11, vocabulary=37)", "resnet(image=9)"}) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
      for (const int depth : {0, 2}) {
        SCOPED_TRACE(std::string(model) + " " + at::toString(dtype) + " depth " + std::to_string(depth));
        const Data from = data(model, dtype);
        Loader on_cpu(*from.source, from.sampler, at::kCPU, 0);
        Loader on_gpu(*from.source, from.sampler, device_, depth);
        for (int64_t i = 0; i < kNumBatches; ++i) expect_same(on_gpu.next(), on_cpu.next(), i);
      }
    }
  }
}

// Page-locked memory must not be reused before the GPU has copied it. The copies here wait for slow kernels.
TEST_F(LoaderOnGpu, CopiesWhatItReadWhenTheGpuIsBehind) {
  const Data from = data("gpt2(sequence=512, vocabulary=50257)", at::kFloat);
  const at::Tensor slow = at::rand({4096, 4096}, at::TensorOptions(device_));
  for (const int depth : {0, 2}) {
    Loader on_gpu(*from.source, from.sampler, device_, depth);
    std::vector<Batch> batches;
    for (int64_t i = 0; i < kNumBatches; ++i) {
      at::mm(slow, slow);
      batches.push_back(on_gpu.next());
    }
    Loader on_cpu(*from.source, from.sampler, at::kCPU, 0);
    for (int64_t i = 0; i < kNumBatches; ++i) expect_same(batches[static_cast<size_t>(i)], on_cpu.next(), i);
  }
}

TEST_F(LoaderOnGpu, StartsAtAnyStepAndEndsAtAnyTime) {
  const Data from = data("mlp(features=13)", at::kFloat);
  for (const int64_t first_step : {1, 5})
    for (const int64_t taken : {0, 1, 3}) {
      Loader on_cpu(*from.source, from.sampler, at::kCPU, 0, first_step);
      Loader on_gpu(*from.source, from.sampler, device_, 2, first_step);
      for (int64_t i = 0; i < taken; ++i) expect_same(on_gpu.next(), on_cpu.next(), i);
    }
}

}  // namespace
}  // namespace shardmark
