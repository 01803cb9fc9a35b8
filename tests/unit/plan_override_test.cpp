// Tests overrides from the command line: what they replace, and errors if no block has such an axis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "plan/suite.h"

namespace shardmark {
namespace {

const char* const kOverridden = R"(
ranks: [1, 2]
training:
  - {model: mlp, strategy: [ddp, zero3], batch_size: [2, 4], ranks: 4}
  - {model: mlp, strategy: ddp, global_batch: 8}
collectives:
  - {operation: broadcast, bytes: 8}
)";
const char* const kCollectives = "collectives: {operation: broadcast, bytes: 8}";

template <class Get>
auto values(const Suite& suite, Get get) {
  std::set<std::decay_t<decltype(get(suite.points.front()))>> found;
  for (const auto& point : suite.points) found.insert(get(point));
  return found;
}

std::string error_of(const std::string& suite, const Overrides& overrides) {
  try {
    parse_suite(suite, "s.yaml", overrides);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Overrides, NoneChangeNothing) {
  EXPECT_EQ(parse_suite(kOverridden, "s.yaml", {}).points.size(), 4u + 2 + 2);
}

TEST(Overrides, RanksReplaceThoseOfEveryBlock) {
  Overrides overrides;
  overrides.axes["ranks"] = {"3", "5"};
  const Suite suite = parse_suite(kOverridden, "s.yaml", overrides);
  EXPECT_EQ(values(suite, [](const Point& p) { return p.ranks; }), (std::set<int64_t>{3, 5}));
  EXPECT_EQ(suite.points.size(), 8u + 2 + 2);
}

TEST(Overrides, ChoicesAreResolved) {
  Overrides overrides;
  overrides.axes["strategy"] = {"single", "fsdp(shard=gradients)", "fsdp:prefetch=2"};
  overrides.axes["model"] = {"gpt2(layers=1, width=8, heads=2)"};
  overrides.axes["optimizer"] = {"adamw(lr=1e-5)"};
  overrides.axes["precision"] = {"fp64"};
  const Suite suite = parse_suite(kOverridden, "s.yaml", overrides);
  EXPECT_EQ(suite.points.size(), 3u * 2 + 3 * 2 + 2);
  const auto& training = suite.points.front().training;
  EXPECT_EQ(training.model.options.at("sequence"), 1024);
  EXPECT_EQ(training.optimizer.options.at("lr"), 1e-5);
  EXPECT_EQ(training.precision, "fp64");
  std::set<std::string> strategies;
  for (const auto& point : suite.points)
    if (point.workload == "training") strategies.insert(to_text(point.training.strategy));
  EXPECT_EQ(strategies, (std::set<std::string>{
                            "single", "fsdp(shard=gradients, layout=flat, prefetch=1, group=0, offload=none)",
                            "fsdp(shard=full, layout=flat, prefetch=2, group=0, offload=none)"}));
}

TEST(Overrides, BatchSizesLeaveStrongScalingAlone) {
  Overrides overrides;
  overrides.axes["batch_size"] = {"16"};
  const Suite suite = parse_suite(kOverridden, "s.yaml", overrides);
  for (const auto& point : suite.points) {
    if (point.workload != "training") continue;
    EXPECT_EQ(point.training.batch_size, point.training.scaling == "weak" ? 16 : 8);
  }
}

TEST(Overrides, StepsRepeatsSeedAndTime) {
  Overrides overrides;
  overrides.steps = 3;
  overrides.repeats = 2;
  overrides.seed = 9;
  overrides.time_limit_s = 0.25;
  overrides.duration_s = 5400;
  const Suite suite = parse_suite(kOverridden, "s.yaml", overrides);
  EXPECT_EQ(suite.repeats, 2);
  for (const auto& point : suite.points) {
    EXPECT_EQ(point.sampling.min_steps, 3);
    EXPECT_EQ(point.sampling.max_steps, 3);
    EXPECT_EQ(point.seed, 9);
    EXPECT_DOUBLE_EQ(point.sampling.time_limit_s, 0.25);
    EXPECT_DOUBLE_EQ(point.sampling.duration_s, 5400);
  }
}

TEST(Overrides, ComeBeforeExclude) {
  Overrides overrides;
  overrides.axes["strategy"] = {"ddp", "single"};
  const std::string rule = std::string(kOverridden) + "exclude: {strategy: single}\n";
  EXPECT_EQ(parse_suite(rule, "s.yaml", overrides).points.size(), 2u + 2 + 2);
}

TEST(Overrides, OfAnAxisThatNoBlockHasAreErrors) {
  Overrides strategies;
  strategies.axes["strategy"] = {"ddp"};
  EXPECT_EQ(error_of(kCollectives, strategies),
            "--strategy: s.yaml has no training block; leave the flag out or choose another suite");
  Overrides batches;
  batches.axes["batch_size"] = {"4"};
  EXPECT_EQ(error_of("training: {model: mlp, strategy: ddp, global_batch: 4}", batches),
            "--batch-size: s.yaml has no training block with batch_size; leave the flag out or choose "
            "another suite");
}

TEST(Overrides, WrongValuesAreErrors) {
  const auto with = [](auto set) {
    Overrides overrides;
    set(overrides);
    return error_of(kOverridden, overrides);
  };
  EXPECT_THAT(with([](Overrides& o) { o.axes["strategy"] = {"dpp"}; }),
              testing::StartsWith(
                  "--strategy: unknown strategy 'dpp'; did you mean 'ddp'? accepted: auto, ddp, fsdp"));
  EXPECT_THAT(with([](Overrides& o) { o.axes["strategy"] = {"fsdp(shard=half)"}; }),
              testing::StartsWith("--strategy: option 'shard' of strategy fsdp is \"half\""));
  EXPECT_THAT(with([](Overrides& o) { o.axes["strategy"] = {"fsdp("}; }),
              testing::StartsWith("--strategy: 'fsdp('"));
  EXPECT_THAT(with([](Overrides& o) { o.axes["model"] = {"gpt2(heads=5)"}; }),
              testing::StartsWith("--model: gpt2: width 768 is not a multiple of heads 5"));
}

}  // namespace
}  // namespace shardmark
