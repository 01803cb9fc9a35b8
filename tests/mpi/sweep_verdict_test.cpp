// Tests whether an exception becomes an outcome of the point or is passed on.
// RANKS 1
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/nccl/lost_gpu.h"
#include "sweep/verdict.h"

namespace shardmark {
namespace {

Outcome outcome_of(const std::string& text) {
  return attempt([&] { TORCH_CHECK(false, text); }).outcome;
}

// A search for the largest batch ends at a failure. But it continues if memory ran out outside of PyTorch's
// allocator, which this text reveals.
TEST(Verdict, KnowsOutOfMemoryByItsText) {
  EXPECT_EQ(outcome_of("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"),
            Outcome::out_of_memory);
  EXPECT_EQ(outcome_of("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            Outcome::out_of_memory);
  EXPECT_EQ(outcome_of("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
            Outcome::out_of_memory);
  EXPECT_EQ(outcome_of("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED"), Outcome::failed);
}

// After a GPU is lost, every later CUDA call of the process fails. So each remaining point needs a new job.
TEST(Verdict, KnowsALostGpuByItsText) {
  for (const cudaError_t code :
       {cudaErrorECCUncorrectable, cudaErrorIllegalAddress, cudaErrorAssert, cudaErrorLaunchFailure,
        cudaErrorNoDevice, cudaErrorLaunchTimeout, cudaErrorContextIsDestroyed, cudaErrorNvlinkUncorrectable})
    EXPECT_TRUE(tells_of_lost_gpu(std::string("CUDA error: ") + cudaGetErrorString(code) +
                                  "\nCompile with `TORCH_USE_CUDA_DSA`"))
        << cudaGetErrorName(code);
  EXPECT_TRUE(tells_of_lost_gpu("CUDA error: unknown error"));
  EXPECT_TRUE(tells_of_lost_gpu("NVML: GPU is lost"));
  for (const cudaError_t code : {cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorNotReady,
                                 cudaErrorInvalidConfiguration, cudaErrorNoKernelImageForDevice})
    EXPECT_FALSE(tells_of_lost_gpu(std::string("CUDA error: ") + cudaGetErrorString(code)))
        << cudaGetErrorName(code);
  EXPECT_FALSE(tells_of_lost_gpu("Expected all tensors to be on the same device"));
  EXPECT_FALSE(tells_of_lost_gpu("ncclAllReduce failed: unhandled cuda error; "));
}

TEST(Verdict, SaysWhoLostWhichGpuInOneLine) {
  EXPECT_EQ(
      lost_gpu_line(3, "node2", "GPU 3 (0000:17:00.0)", "CUDA error: unspecified launch failure\nCUDA ..."),
      "rank 3 on node2 has lost GPU 3 (0000:17:00.0): CUDA error: unspecified launch failure; on that node "
      "`dmesg | grep -i xid` and `nvidia-smi -q` tell more: reset the GPU (nvidia-smi -r), or leave the "
      "node out");
}

TEST(Verdict, NamesTheStageOfARankInAPipeline) {
  Point point;
  point.ranks = 8;
  point.training.pipeline = 2;
  point.training.tensor = 2;
  const Verdict verdict{Outcome::out_of_memory, "rank 5: no room", 5};
  EXPECT_EQ(reason_of(verdict, point), "rank 5 (pipeline stage 1): no room");
  point.training.rank_order = "pp-dp";
  EXPECT_EQ(reason_of(verdict, point), "rank 5 (pipeline stage 0): no room");
  EXPECT_EQ(reason_of({Outcome::wrong, "wrong: a loss"}, point),
            "wrong: a loss");  // not specific to one rank
  point.training.pipeline = 1;
  EXPECT_EQ(reason_of(verdict, point), "rank 5: no room");
}

// On several ranks, an exception ends the job; see tests/faults/one_rank.sh.
TEST(Verdict, OfAStageInStepIsByWhatARankHasKeptUpWith) {
  const HostGroup world = HostGroup::world();
  HeartbeatPage page{};
  Heartbeat heartbeat(page);
  bool done = false;
  const auto body = [&] { done = true; };
  const auto none = [] { return std::exception_ptr(); };
  EXPECT_TRUE(agreed_in_step(world, heartbeat, "a stage", body, none).ok());
  EXPECT_TRUE(std::exchange(done, false));
  const auto no_room = [] { return std::make_exception_ptr(OutOfMemory("no room")); };
  const Verdict verdict = agreed_in_step(world, heartbeat, "a stage", body, no_room);
  EXPECT_TRUE(done);
  EXPECT_EQ(verdict.outcome, Outcome::out_of_memory);
  EXPECT_EQ(verdict.reason, "rank 0: no room");
  const auto throws = [] { throw std::logic_error("a bad batch"); };
  EXPECT_EQ(agreed_in_step(world, heartbeat, "a stage", throws, none).outcome, Outcome::failed);
}

TEST(Verdict, PassesOnWhatNoAgreementCanMend) {
  EXPECT_TRUE(attempt([] {}).ok());
  EXPECT_EQ(attempt([] { throw OutOfMemory("no room"); }).outcome, Outcome::out_of_memory);
  EXPECT_THROW(static_cast<void>(attempt([] { throw SystemError("the network is down"); })), SystemError);
}

}  // namespace
}  // namespace shardmark
