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
  overrides.duration_s = 5400;
  overrides.set = {"seed=9", "sampling.time_limit=0.25"};
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

// --set reads each value as the suite would.
TEST(Overrides, SetTakesAnyKeyAsTheSuiteWritesIt) {
  Overrides overrides;
  overrides.set = {"clip_norm=1",
                   "accumulation=[2, 4]",
                   "strategy={fsdp: {prefetch: [1, 2]}}",
                   "pipeline=1",
                   "clip_norm=none",
                   "memory_limit=8GiB",
                   "shuffle=false",
                   "environment=[NCCL_ALGO=Ring NCCL_PROTO=LL, NCCL_ALGO=Tree]",
                   "ranks=8"};
  const Suite suite = parse_suite(
      "training: {model: mlp, strategy: ddp, batch_size: 2}\ncollectives: {operation: broadcast, bytes: 8}",
      "s.yaml", overrides);
  EXPECT_EQ(suite.points.size(), 2u * 2 * 2 + 2);
  EXPECT_EQ(suite.memory_limit_bytes, int64_t{8} << 30);
  EXPECT_FALSE(suite.shuffle);
  EXPECT_EQ(values(suite, [](const Point& p) { return p.environment; }),
            (std::set<std::string>{"NCCL_ALGO=Ring NCCL_PROTO=LL", "NCCL_ALGO=Tree"}));
  EXPECT_EQ(values(suite, [](const Point& p) { return p.ranks; }), (std::set<int64_t>{8}));
  std::set<int64_t> accumulations;
  for (const Point& point : suite.points) {
    if (point.workload != "training") continue;
    EXPECT_EQ(point.training.strategy.name, "fsdp");
    EXPECT_EQ(point.training.clip_norm, 0) << "the last value of a key counts";
    accumulations.insert(point.training.accumulation);
  }
  EXPECT_EQ(accumulations, (std::set<int64_t>{2, 4}));
}

// A suite and --set also take a choice with its options in the form that flags have.
TEST(Overrides, ChoicesMayBeWrittenWithTheirOptions) {
  Overrides overrides;
  overrides.set = {"strategy=fsdp(prefetch=2)"};
  const std::string suite = "training: {model: mlp(layers=3), strategy: ddp, batch_size: 2}";
  const TrainingPoint training = parse_suite(suite, "s.yaml", overrides).points.front().training;
  EXPECT_EQ(training.strategy.options.at("prefetch"), 2);
  EXPECT_EQ(training.model.options.at("layers"), 3);
  EXPECT_EQ(error_of("training: {model: mlp, strategy: fsdp(, batch_size: 2}", {}).find("s.yaml:1:"), 0u);
}

TEST(Overrides, SetNamesTheKeyAndWhatIsAccepted) {
  const auto with = [](const std::string& text) {
    Overrides overrides;
    overrides.set = {text};
    return error_of(kOverridden, overrides);
  };
  EXPECT_THAT(
      with("acumulation=2"),
      testing::StartsWith("--set: unknown key 'acumulation'; did you mean 'accumulation'? accepted: "));
  EXPECT_THAT(with("time_limit=2"), testing::HasSubstr("sampling.time_limit"));
  EXPECT_EQ(with("tensor"), "--set: expected tensor=VALUE, got 'tensor'");
  EXPECT_EQ(with("tensor="), "--set: expected tensor=VALUE, got 'tensor='");
  EXPECT_EQ(with("suites/x.yaml"), "--set: expected KEY=VALUE, got 'suites/x.yaml'");
  EXPECT_EQ(with("tensor=two"), "--set: tensor: expected a whole number from 1 to 4096, got 'two'");
  EXPECT_THAT(with("tensor=[1, 2"), testing::StartsWith("--set tensor:1:"));
  EXPECT_THAT(with("pipeline_schedule=gpip"), testing::HasSubstr("did you mean 'gpipe'?"));
  EXPECT_EQ(with("sampling.min_steps=1000000"), "--set: sampling: min_steps 1000000 is above max_steps 200");
  EXPECT_EQ(with("global_batch={a: 1}").find("--set: global_batch: expected "), 0u);
  Overrides both;
  both.axes["strategy"] = {"ddp"};
  both.set = {"strategy=zero3"};
  EXPECT_EQ(error_of(kOverridden, both), "--set: strategy: --strategy gives it, too; leave out one of them");
  Overrides absent;
  absent.set = {"tensor=2"};
  EXPECT_EQ(error_of(kCollectives, absent),
            "--set tensor: s.yaml has no training block; leave it out or choose another suite");
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
            "--strategy: s.yaml has no training block; leave it out or choose another suite");
  Overrides batches;
  batches.axes["batch_size"] = {"4"};
  EXPECT_EQ(
      error_of("training: {model: mlp, strategy: ddp, global_batch: 4}", batches),
      "--batch-size: s.yaml has no training block with batch_size; leave it out or choose another suite");
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
