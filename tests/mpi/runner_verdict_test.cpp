// What becomes of an exception: an outcome, or one that goes on.
// RANKS 1
#include <gtest/gtest.h>

#include "base/error.h"
#include "runner/verdict.h"

namespace shardmark {
namespace {

Outcome outcome_of(const std::string& text) {
  return attempt([&] { TORCH_CHECK(false, text); }).outcome;
}

// Searches for the largest batch end at a failure, but not where memory ran out beside torch's allocator.
TEST(Verdict, KnowsOutOfMemoryByItsText) {
  EXPECT_EQ(outcome_of("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"),
            Outcome::out_of_memory);
  EXPECT_EQ(outcome_of("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            Outcome::out_of_memory);
  EXPECT_EQ(outcome_of("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
            Outcome::out_of_memory);
  EXPECT_EQ(outcome_of("CUDA error: an illegal memory access was encountered"), Outcome::failed);
  EXPECT_EQ(outcome_of("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED"), Outcome::failed);
}

TEST(Verdict, PassesOnWhatNoAgreementCanMend) {
  EXPECT_TRUE(attempt([] {}).ok());
  EXPECT_EQ(attempt([] { throw OutOfMemory("no room"); }).outcome, Outcome::out_of_memory);
  EXPECT_THROW(static_cast<void>(attempt([] { throw SystemError("the network is down"); })), SystemError);
}

}  // namespace
}  // namespace shardmark
