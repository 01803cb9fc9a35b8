// Tests the loader: the order of batches, errors, bounded prefetching, and that it can be destroyed at any
// time.
// RANKS 1
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "data/loader.h"

namespace shardmark {
namespace {

// A data source whose batches contain the indices of their samples. It can throw at one of them.
class Numbers : public DataSource {
 public:
  explicit Numbers(int fails_at = -1) : fails_at_(fails_at) {}
  int64_t size() const override { return 20; }
  Batch fetch(const std::vector<Draw>& draws, bool) const override {
    if (fetched_++ == fails_at_) throw UsageError("the disk is gone");
    auto index = at::empty({std::ssize(draws)}, at::kLong), epoch = at::empty_like(index);
    for (int64_t i = 0; i < std::ssize(draws); ++i) {
      index.data_ptr<int64_t>()[i] = draws[static_cast<size_t>(i)].index;
      epoch.data_ptr<int64_t>()[i] = draws[static_cast<size_t>(i)].epoch;
    }
    return {index, epoch};
  }
  int fetched() const { return fetched_; }

 private:
  int fails_at_;
  mutable std::atomic<int> fetched_ = 0;
};

const DistributedSampler kSampler(20, 2, 1, 3, 2, 7);

class LoaderDepth : public ::testing::TestWithParam<int> {};

TEST_P(LoaderDepth, GivesEveryMicroBatchInOrder) {
  const Numbers source;
  Loader loader(source, kSampler, at::kCPU, GetParam());
  for (int64_t position = 0; position < 40; ++position) {
    const Batch batch = loader.next();
    const auto draws = kSampler.draw(position / 2, position % 2);
    ASSERT_EQ(batch.num_samples(), std::ssize(draws));
    for (int64_t i = 0; i < std::ssize(draws); ++i) {
      EXPECT_EQ(batch.inputs[i].item<int64_t>(), draws[static_cast<size_t>(i)].index);
      EXPECT_EQ(batch.targets[i].item<int64_t>(), draws[static_cast<size_t>(i)].epoch);
    }
  }
}

TEST_P(LoaderDepth, ThrowsAnErrorInItsTurn) {
  const Numbers source(3);
  Loader loader(source, kSampler, at::kCPU, GetParam());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loader.next().num_samples(), 3);
  EXPECT_THROW(loader.next(), UsageError);
}

TEST_P(LoaderDepth, EndsAtAnyTime) {
  for (int taken : {0, 1, 5})
    for (int fails_at : {-1, 0, 2}) {
      const Numbers source(fails_at);
      Loader loader(source, kSampler, at::kCPU, GetParam());
      try {
        for (int i = 0; i < taken; ++i) loader.next();
      } catch (const UsageError&) {
        EXPECT_GE(fails_at, 0);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Depths, LoaderDepth, ::testing::Values(0, 1, 2, 5));

TEST(Loader, WorksAheadAsFarAsItsDepth) {
  const Numbers source;
  Loader loader(source, kSampler, at::kCPU, 2);
  loader.next();
  // This loop ends because the thread refills the queue by itself.
  while (source.fetched() < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(source.fetched(), 3);
}

TEST(Loader, WithoutAThreadDoesNothingUnasked) {
  const Numbers source;
  Loader loader(source, kSampler, at::kCPU, 0);
  EXPECT_EQ(source.fetched(), 0);
  loader.next();
  EXPECT_EQ(source.fetched(), 1);
}

TEST(Loader, KeepsThrowingAfterAnError) {
  const Numbers source(0);
  Loader loader(source, kSampler, at::kCPU, 2);
  EXPECT_THROW(loader.next(), UsageError);
  EXPECT_THROW(loader.next(), UsageError);
}

TEST(Loader, PrefetchesWhereACoreIsFree) {
  EXPECT_EQ(prefetch_depth(2, 2, 1), 0);
  EXPECT_EQ(prefetch_depth(2, 4, 1), 0);
  EXPECT_EQ(prefetch_depth(2, 1, 1), 2);
  EXPECT_EQ(prefetch_depth(64, 8, 8), 0);
  EXPECT_EQ(prefetch_depth(64, 8, 7), 2);
}

}  // namespace
}  // namespace shardmark
