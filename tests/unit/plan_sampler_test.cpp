// Tests the shuffle and the distributed sampler: no sample is lost or duplicated, and the global batches are
// the same for any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/order/sampler.h"

namespace shardmark {
namespace {

std::vector<int64_t> order(int64_t size, uint64_t key) {
  std::vector<int64_t> values(static_cast<size_t>(size));
  const Permutation permutation(size, key);
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i)] = permutation(i);
  return values;
}

// Returns all samples of the global batches of `steps` steps, in order.
std::vector<Draw> global_draws(int64_t samples, int64_t ranks, int64_t batch, int64_t accumulation,
                               int64_t seed, int64_t steps) {
  std::vector<Draw> all;
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const DistributedSampler sampler(samples, ranks, rank, batch, accumulation, seed);
      for (int64_t micro = 0; micro < accumulation; ++micro) {
        const auto draws = sampler.draw(step, micro);
        EXPECT_EQ(std::ssize(draws), batch);
        all.insert(all.end(), draws.begin(), draws.end());
      }
    }
  return all;
}

TEST(Permutation, HoldsEachValueOnce) {
  std::vector<int64_t> sizes = {1000, 1024, 1025, 4097, 50000};
  for (int64_t size = 1; size <= 150; ++size) sizes.push_back(size);
  for (const int64_t size : sizes)
    for (uint64_t key : {0u, 1u, 77u}) {
      auto values = order(size, key);
      std::sort(values.begin(), values.end());
      std::vector<int64_t> expected(values.size());
      std::iota(expected.begin(), expected.end(), 0);
      ASSERT_EQ(values, expected) << "size " << size << ", key " << key;
    }
}

TEST(Permutation, ServesSizesThatNoListCouldHold) {
  const int64_t size = 1'000'000'007'000;
  const Permutation permutation(size, 5);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 20000; ++i) {
    const int64_t value = permutation(size - 1 - i);
    ASSERT_TRUE(value >= 0 && value < size);
    ASSERT_TRUE(seen.insert(value).second);
  }
}

// A chi-square test for equal probabilities. The 24 orders give 23 degrees of freedom, for which 0.1 % of the
// values exceed 49.7.
TEST(Permutation, ReachesAllOrdersOfFourEquallyOften) {
  std::map<std::vector<int64_t>, int> counts;
  const int keys = 24000;
  for (int key = 0; key < keys; ++key) ++counts[order(4, static_cast<uint64_t>(key))];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [values, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 49.7);
}

TEST(Permutation, LeavesNoTraceOfTheOldOrder) {
  const auto values = order(10000, 3);
  int64_t neighbours = 0, fixed = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    neighbours += values[i + 1] == values[i] + 1;
    fixed += values[i] == static_cast<int64_t>(i);
  }
  EXPECT_LT(neighbours, 8);  // 1 expected
  EXPECT_LT(fixed, 8);       // 1 expected
}

TEST(Sampler, ShowsEverySampleOnceAnEpoch) {
  const int64_t samples = 50, ranks = 3, batch = 4, steps = 25;  // 25 steps of 12 samples are 6 epochs
  const auto draws = global_draws(samples, ranks, batch, 1, 9, steps);
  ASSERT_EQ(std::ssize(draws), 6 * samples);
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < samples; ++i) {
      const Draw& draw = draws[static_cast<size_t>(epoch * samples + i)];
      EXPECT_EQ(draw.epoch, epoch);
      EXPECT_TRUE(draw.index >= 0 && draw.index < samples);
      EXPECT_TRUE(seen.insert(draw.index).second) << draw.index << " twice in epoch " << epoch;
    }
  }
}

TEST(Sampler, FillsThePartialBatchFromTheNextEpoch) {
  const auto draws =
      DistributedSampler(10, 1, 0, 8, 1, 4).draw(1, 0);  // positions 8 to 15 of the sequence of samples
  std::vector<int64_t> epochs;
  for (const Draw& draw : draws) epochs.push_back(draw.epoch);
  EXPECT_THAT(epochs, ::testing::ElementsAre(0, 0, 1, 1, 1, 1, 1, 1));
}

TEST(Sampler, ServesSetsSmallerThanABatch) {
  const auto draws = global_draws(3, 2, 4, 2, 1, 2);  // 2 global batches of 16 samples, from a set of 3
  std::map<int64_t, int> counts;
  for (const Draw& draw : draws) ++counts[draw.index];
  EXPECT_EQ(draws.back().epoch, 10);
  for (int64_t index = 0; index < 3; ++index) EXPECT_NEAR(counts[index], 32 / 3.0, 1.0);
  EXPECT_EQ(global_draws(1, 1, 3, 1, 0, 1), (std::vector<Draw>{{0, 0}, {0, 1}, {0, 2}}));
}

TEST(Sampler, GivesTheSameGlobalBatchesHoweverTheyAreDivided) {
  const auto expected = global_draws(101, 1, 12, 1, 2, 30);
  EXPECT_EQ(global_draws(101, 2, 6, 1, 2, 30), expected);
  EXPECT_EQ(global_draws(101, 1, 4, 3, 2, 30), expected);
  EXPECT_EQ(global_draws(101, 3, 2, 2, 2, 30), expected);
  EXPECT_EQ(global_draws(101, 12, 1, 1, 2, 30), expected);
}

TEST(Sampler, ShufflesBySeedAndEpochAlone) {
  const auto epoch = [](int64_t seed, int64_t number) {
    return DistributedSampler(64, 1, 0, 64, 1, seed).draw(number, 0);
  };
  const auto indices = [](const std::vector<Draw>& draws) {
    std::vector<int64_t> values;
    for (const Draw& draw : draws) values.push_back(draw.index);
    return values;
  };
  EXPECT_EQ(epoch(1, 0), epoch(1, 0));
  EXPECT_NE(indices(epoch(1, 0)), indices(epoch(2, 0)));
  EXPECT_NE(indices(epoch(1, 0)), indices(epoch(1, 1)));
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_THROW(DistributedSampler(0, 1, 0, 1, 1, 0), ContractError);
  EXPECT_THROW(DistributedSampler(9, 2, 2, 1, 1, 0), ContractError);
  EXPECT_THROW(DistributedSampler(9, 1, 0, 0, 1, 0), ContractError);
  EXPECT_THROW(DistributedSampler(9, 1, 0, 1, 2, 0).draw(0, 2), ContractError);
}

}  // namespace
}  // namespace shardmark
