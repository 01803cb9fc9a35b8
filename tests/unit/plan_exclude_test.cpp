// Tests the rules of `exclude`: which points they leave out, and which rules are invalid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/suite.h"

namespace shardmark {
namespace {

const char* const kSuite = R"(
ranks: [1, 2]
training:
  - model: [mlp, {gpt2: {layers: 1, width: 8, heads: 1}}]
    strategy: [ddp, {fsdp: {shard: [full, gradients]}}]
    batch_size: [2, 4]
  - {model: mlp, strategy: ddp, global_batch: 4}
collectives:
  - {operation: [all_reduce, broadcast], bytes: [8, 4KiB]}
exclude:
)";  // 24 points of weak scaling, 2 of strong scaling, 8 collectives

size_t count_with(const std::string& rules) { return parse_suite(kSuite + rules, "s.yaml").points.size(); }

TEST(Exclude, LeavesOutWhatMatchesEveryKey) {
  EXPECT_EQ(count_with("  []"), 34u);
  EXPECT_EQ(count_with("  - {strategy: fsdp}"), 34u - 16);
  EXPECT_EQ(count_with("  - {strategy: {fsdp: {shard: full}}}"), 34u - 8);
  EXPECT_EQ(count_with("  - {strategy: {fsdp: {shard: [full, gradients]}}, ranks: 1}"), 34u - 8);
  EXPECT_EQ(count_with("  - {strategy: {fsdp: {shard: full, prefetch: 2}}}"), 34u);
  EXPECT_EQ(count_with("  - {strategy: [ddp, fsdp], model: gpt2}"), 34u - 12);
  EXPECT_EQ(count_with("  - {ranks: 1}"), 17u);
  EXPECT_EQ(count_with("  - {ranks: [1, 2], operation: broadcast}"), 34u - 4);
  EXPECT_EQ(count_with("  - {operation: all_reduce, bytes: 4096}"), 34u - 2);
  EXPECT_EQ(count_with("  - {dtype: float32}"), 34u - 8);
  EXPECT_EQ(count_with("  - {in_place: false}"), 34u);
  EXPECT_EQ(count_with("  - {precision: fp32}"), 8u);
  EXPECT_EQ(count_with("  - {clip_norm: none, checkpointing: [none, full]}"), 8u);
  EXPECT_EQ(count_with("  - {clip_norm: 1.0}"), 34u);
  EXPECT_EQ(count_with("  - {optimizer: {sgd: {momentum: 0.9}}}"), 8u);
  EXPECT_EQ(count_with("  {ranks: 1}"), 17u);
}

// Options are compared in the form that points have them, and those that points leave out have their default.
TEST(Exclude, MatchesOptionsInAnyForm) {
  const auto count_of = [](const std::string& rule) {
    const std::string model =
        "moe: {layers: 1, width: 8, heads: 1, kv_heads: 1, inner: 8, experts: 4, top_k: 2, ";
    return parse_suite(
               "ranks: 1\ntraining: {model: {" + model +
                   "capacity: [0, 1, 1.5], routing: [learned, {zipf: {exponent: 1}}]}}, strategy: ddp, "
                   "batch_size: 1}\nexclude:\n  - {model: {moe: {" +
                   rule + "}}}\n",
               "s.yaml")
        .points.size();
  };
  EXPECT_EQ(count_of("capacity: 1.5"), 4u);
  EXPECT_EQ(count_of("capacity: 1"), 4u);
  EXPECT_EQ(count_of("capacity: 0"), 4u);
  EXPECT_EQ(count_of("capacity: [0, 1.5]"), 2u);
  EXPECT_EQ(count_of("routing: learned"), 3u);
  EXPECT_EQ(count_of("routing: {zipf: {exponent: 1.0}}, capacity: 0"), 5u);
}

TEST(Exclude, RulesAddUp) {
  EXPECT_EQ(count_with("  - {strategy: fsdp, ranks: 1}\n  - {operation: broadcast}"), 34u - 8 - 4);
}

TEST(Exclude, BatchSizeIsWeakAndGlobalBatchIsStrong) {
  EXPECT_EQ(count_with("  - {batch_size: 4}"), 34u - 12);
  EXPECT_EQ(count_with("  - {global_batch: 4}"), 34u - 2);
}

TEST(Exclude, WrongRulesAreErrors) {
  const auto error_of = [](const std::string& rule) -> std::string {
    try {
      count_with(rule);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(
      error_of("  - {strategie: ddp}"),
      "s.yaml:11:6: unknown key 'strategie' in a rule of exclude; did you mean 'strategy'? accepted: "
      "accumulation, "
      "batch_size, beside, bytes, checkpointing, clip_norm, context, data, dispatch, dtype, environment, "
      "expert, gathers, global_batch, graph, "
      "in_place, kernels, model, operation, optimizer, parts, pipeline, pipeline_schedule, precision, "
      "products, "
      "rank_order, "
      "ranks, reduce_dtype, reduction, save, sequence_parallel, stages, strategy, tensor, transport");
  EXPECT_EQ(
      error_of("  - {strategy: {fsdp: {shards: full}}}"),
      "s.yaml:11:32: unknown option 'shards' of strategy fsdp; accepted: shard, layout, prefetch, group, "
      "offload");
  EXPECT_THAT(error_of("  - {strategy: fdsp}"),
              testing::StartsWith("s.yaml:11:16: unknown strategy 'fdsp'; did you mean "));
  EXPECT_THAT(error_of("  - {}"),
              testing::StartsWith("s.yaml:11:5: exclude: an empty rule would leave out every point"));
  EXPECT_EQ(error_of("  - {ranks: [1, 2]}"),
            "s.yaml: exclude leaves no point; shorten its rules or widen the axes");
}

TEST(Exclude, RanksNeedAList) {
  try {
    parse_suite("{training: {model: mlp, strategy: ddp, batch_size: 1}, exclude: {ranks: 1}}", "s.yaml");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "s.yaml:1:73: exclude names ranks, but the suite lists none; give the suite a list of ranks");
  }
}

TEST(Exclude, WarnsOfARuleThatNamesNoPoint) {
  const std::string rules = "  - {strategy: zero3}\n  - {ranks: 1}\n  - {precision: bf16}\n";
  const Suite suite = parse_suite(kSuite + rules, "s.yaml");
  EXPECT_THAT(suite.warnings,
              testing::ElementsAre("s.yaml:11:5: this rule of exclude names no point of the suite",
                                   "s.yaml:13:5: this rule of exclude names no point of the suite"));
  // There is no warning if another rule has already left out the points of a rule, or if the command line
  // replaced the axis that the rule names.
  EXPECT_THAT(parse_suite(std::string(kSuite) + "  - {ranks: 1}\n  - {ranks: [1]}\n", "s.yaml").warnings,
              testing::IsEmpty());
  Overrides overrides;
  overrides.axes["strategy"] = {"ddp"};
  EXPECT_THAT(parse_suite(kSuite + rules, "s.yaml", overrides).warnings, testing::IsEmpty());
}

}  // namespace
}  // namespace shardmark
