// Tests how a model is divided into pipeline stages: where the parts begin, and which steps are refused
// because they are too long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "schema/choice.h"
#include "specs/specs.h"
#include "specs/stages.h"
#include "strategies/strategy.h"

namespace shardmark::specs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelTable of_weights(const std::vector<double>& flops) {
  ModelTable model;
  for (const double of_block : flops) model.blocks.push_back({.name = "block", .forward_flops = of_block});
  return model;
}

double largest_part(const std::vector<double>& flops, const std::vector<int64_t>& bounds) {
  double largest = 0;
  for (size_t part = 0; part + 1 < bounds.size(); ++part) {
    double sum = 0;
    for (int64_t block = bounds[part]; block < bounds[part + 1]; ++block)
      sum += flops[static_cast<size_t>(block)];
    largest = std::max(largest, sum);
  }
  return largest;
}

// Returns the smallest possible largest part over all ways to divide the blocks, by dynamic programming over
// the last part.
double least_largest_part(const std::vector<double>& flops, int64_t parts) {
  const auto count = std::ssize(flops);
  std::vector<double> best(flops.size() + 1, std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<double> next(best.size(), std::numeric_limits<double>::infinity());
    for (int64_t end = part + 1; end <= count; ++end) {
      double last = 0;
      for (int64_t begin = end - 1; begin >= part; --begin) {
        last += flops[static_cast<size_t>(begin)];
        next[static_cast<size_t>(end)] =
            std::min(next[static_cast<size_t>(end)], std::max(best[static_cast<size_t>(begin)], last));
      }
    }
    best = next;
  }
  return best.back();
}

TEST(PartBounds, MakeTheLargestPartAsSmallAsItCanBe) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> flops(1 + random() % 14);
    for (double& of_block : flops)
      of_block = trial % 3 == 0 ? 0.1 : static_cast<double>(random() % 1000) * (trial % 3 == 1 ? 1 : 1e9 / 7);
    const auto parts = static_cast<int64_t>(1 + random() % flops.size());
    const std::vector<int64_t> bounds = part_bounds(of_weights(flops), parts, /*by_flops=*/true);
    ASSERT_EQ(std::ssize(bounds), parts + 1);
    EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end()));
    EXPECT_EQ(std::adjacent_find(bounds.begin(), bounds.end()), bounds.end());
    EXPECT_NEAR(largest_part(flops, bounds), least_largest_part(flops, parts),
                1e-9 * largest_part(flops, bounds));
  }
}

std::vector<int64_t> lengths(const std::vector<int64_t>& bounds) {
  std::vector<int64_t> found;
  for (size_t part = 0; part + 1 < bounds.size(); ++part) found.push_back(bounds[part + 1] - bounds[part]);
  return found;
}

// The head of Llama 8B costs as much as 1.8 layers, so a part costs at most 5 layers. If stages were filled
// from the front, they would have 6, 5, 5, 5, 5, 5, 2 and 1 blocks. The first stage, which holds 8
// micro-batches under 1F1B, would then have the most blocks.
TEST(PartBounds, StagesOfALanguageModelAreAsEvenAsTheHeadAllows) {
  const SharedTable llama = model_table(resolve({"llama_8b"}, model_spec("llama_8b").options, "model"));
  EXPECT_THAT(lengths(part_bounds(*llama, 8, /*by_flops=*/true)), ElementsAre(4, 4, 4, 4, 4, 5, 5, 4));
  EXPECT_THAT(lengths(part_bounds(*llama, 8, /*by_flops=*/false)), ElementsAre(4, 4, 4, 4, 4, 4, 5, 5));
}

TEST(PartBounds, EarlierPartsHaveTheFewerBlocks) {
  EXPECT_THAT(lengths(part_bounds(of_weights({1, 1, 1, 1, 1, 1, 1}), 3, true)), ElementsAre(2, 2, 3));
  EXPECT_THAT(lengths(part_bounds(of_weights({1, 1, 1, 1, 1, 1, 3}), 4, true)), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(lengths(part_bounds(of_weights({9, 1, 1, 1, 1}), 3, true)), ElementsAre(1, 2, 2));
  EXPECT_THAT(lengths(part_bounds(of_weights({0, 0, 0, 0, 9}), 2, true)), ElementsAre(2, 3));
  EXPECT_THAT(lengths(part_bounds(of_weights({1, 1, 1, 1, 1, 1, 9}), 4, true)), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(lengths(part_bounds(of_weights({1, 3, 1, 1, 9}), 3, true)), ElementsAre(2, 2, 1));
  EXPECT_THAT(lengths(part_bounds(of_weights({0, 0, 0, 0}), 2, true)), ElementsAre(2, 2));
}

// The part with the most blocks has as few blocks as possible, among all divisions whose largest part costs
// as little as this one's.
TEST(PartBounds, NoOtherCutOfTheSameWorkHasFewerBlocksInEveryPart) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> flops(2 + random() % 9);
    for (double& of_block : flops) of_block = static_cast<double>(1 + random() % 4);
    const auto parts = static_cast<int64_t>(1 + random() % flops.size());
    const std::vector<int64_t> bounds = part_bounds(of_weights(flops), parts, /*by_flops=*/true);
    const double work = largest_part(flops, bounds);
    int64_t least = std::ssize(flops);
    for (uint64_t set = 0; set < uint64_t{1} << (flops.size() - 1); ++set) {  // the blocks that begin a part
      if (std::popcount(set) != parts - 1) continue;
      std::vector<int64_t> other = {0};
      for (size_t block = 1; block < flops.size(); ++block)
        if (set >> (block - 1) & 1) other.push_back(static_cast<int64_t>(block));
      other.push_back(std::ssize(flops));
      const std::vector<int64_t> blocks = lengths(other);
      if (largest_part(flops, other) <= work) least = std::min(least, *std::ranges::max_element(blocks));
    }
    const std::vector<int64_t> found = lengths(bounds);
    EXPECT_EQ(*std::ranges::max_element(found), least);
  }
}

Point long_step(const std::string& model, int64_t ranks, int64_t pipeline, int64_t micro_batches) {
  Point point;
  point.workload = "training";
  point.ranks = ranks;
  const Choice choice = choice_from_text(model);
  point.training.model = resolve(choice, model_spec(choice.name).options, "model");
  point.training.strategy = resolve({"ddp"}, strategies::strategy("ddp").options, "strategy");
  point.training.batch_size = 1;
  point.training.pipeline = pipeline;
  point.training.accumulation = micro_batches;
  return point;
}

// A step that would take minutes and gigabytes to generate is refused, with and without a pipeline. The error
// says which values work.
TEST(LayoutImpossible, RefusesStepsOfTooManyPasses) {
  const std::string small = "gpt2(layers=2, width=8, heads=2, sequence=8, vocabulary=16)",
                    deep = "gpt2(layers=4096, width=8, heads=2, sequence=8, vocabulary=16)";
  EXPECT_THAT(
      strategies::layout_impossible(long_step(small, 2, 2, 65536)),
      HasSubstr("65536 micro-batches through 4 blocks are 262144 passes in a step, and at most 100000 "
                "work; take accumulation 25000 or less"));
  EXPECT_EQ(strategies::layout_impossible(long_step(small, 2, 2, 25000)), "");
  EXPECT_NE(strategies::layout_impossible(long_step(small, 2, 1, 65536)), "");
  EXPECT_THAT(strategies::layout_impossible(long_step(deep, 4096, 64, 64)),
              HasSubstr("take accumulation 24"));
  EXPECT_EQ(strategies::layout_impossible(long_step(deep, 4096, 64, 24)), "");
}

}  // namespace
}  // namespace shardmark::specs
