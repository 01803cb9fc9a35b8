// Every axis declares when it has an effect (schema/axes.h), and the plan uses this: no two points of a
// plan run the same step, and a single value without an effect is reported.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "plan/effects.h"
#include "plan/plan.h"
#include "specs/parts.h"
#include "specs/specs.h"
#include "strategies/program_text.h"
#include "strategies/stages.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Planned {
  std::vector<Point> points;
  std::vector<std::string> warnings, notes;  // warnings of the suite, notes of the plan
  std::vector<std::string> reasons() const {
    std::vector<std::string> all;
    for (const Point& point : points) all.push_back(point.impossible);
    return all;
  }
};

Planned planned(const std::string& suite, int64_t ranks = 4) {
  Planned result;
  const Suite read = parse_suite(suite, "s.yaml");
  result.warnings = read.warnings;
  result.points = make_plan(read, {ranks, 0}, &result.notes);
  return result;
}

std::string training(
    const std::string& keys,
    const std::string& model = "{gpt2: {layers: 2, width: 16, heads: 2, sequence: 8, vocabulary: 64}}") {
  return fmt::format("training: {{model: {}, batch_size: 2, {}}}", model, keys);
}

std::string refusal(const std::string& suite) {
  try {
    parse_suite(suite, "s.yaml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

// An axis that only sometimes has an effect: two values, keys with which both values give the same step, and
// keys with which they differ.
struct Sometimes {
  const char* first;  // the default value
  const char* second;
  const char* idle;
  const char* acting;
  const char* says;
};
const std::map<std::string, Sometimes> kSometimes = {
    {"reduce_dtype",
     {"same", "fp32", "strategy: ddp", "strategy: ddp, precision: bf16",
      "gradients of fp32 are not narrower"}},
    {"checkpointing",
     {"none", "9", "strategy: ddp", "",
      "gpt2 has 4 blocks, and the last one is not recomputed; take a smaller number, or leave checkpointing "
      "at none"}},
    {"gathers",
     {"shared", "own", "strategy: ddp", "strategy: fsdp",
      "gathers no parameters; take a strategy that does, on several ranks, or leave gathers at shared"}},
    {"sequence_parallel",
     {"false", "true", "strategy: ddp", "strategy: ddp, tensor: 2", "take tensor 2 or more"}},
    {"pipeline_schedule",
     {"1f1b", "gpipe", "strategy: ddp, accumulation: 4", "strategy: ddp, pipeline: 2, accumulation: 4",
      "take pipeline 2 or more"}},
    {"dispatch", {"copy", "rank", "strategy: ddp", "", "every rank has all experts; take expert 2 or more"}},
    {"stages", {"flops", "blocks", "strategy: ddp", "", "take pipeline 2 or more"}},
    {"rank_order",
     {"dp-pp", "pp-dp", "strategy: ddp, pipeline: 4", "strategy: ddp, pipeline: 2",
      "one copy of the model"}}};

TEST(Effects, AreKnownOfEveryAxis) {
  std::set<std::string> told;
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.acts != Acts::always && axis.acts != Acts::where_refused_else) told.insert(axis.key);
  for (const auto& [key, sometimes] : kSometimes) EXPECT_EQ(told.erase(key), 1u) << key;
  EXPECT_THAT(told, IsEmpty()) << "add a row above";
}

TEST(Effects, OfGatheredInputsNeedSequenceParallel) {
  const auto reasons = [](const std::string& keys) {
    return planned(training("strategy: ddp, checkpointing: gathered" + keys)).reasons();
  };
  EXPECT_THAT(reasons(", tensor: 2, sequence_parallel: true"), ElementsAre(""));
  for (const std::string keys : {"", ", tensor: 2"})
    EXPECT_THAT(reasons(keys), ElementsAre(AllOf(HasSubstr("checkpointing gathered changes nothing here"),
                                                 HasSubstr("no rank gathers inputs"))));
}

TEST(Effects, OfNoneMakeOnePointOfAList) {
  for (const auto& [key, s] : kSometimes) {
    SCOPED_TRACE(key);
    const Planned both = planned(training(fmt::format("{}, {}: [{}, {}]", s.idle, key, s.first, s.second)));
    EXPECT_THAT(both.reasons(), ElementsAre(""));
    EXPECT_THAT(both.notes, ElementsAre(AllOf(HasSubstr(key), HasSubstr("one point"))));
    EXPECT_EQ(point_id(both.points.at(0)), point_id(planned(training(s.idle)).points.at(0)));

    const Planned one = planned(training(fmt::format("{}, {}: {}", s.idle, key, s.second)));
    EXPECT_THAT(one.reasons(), ElementsAre(AllOf(HasSubstr(key + " "), HasSubstr("changes nothing here"),
                                                 HasSubstr(s.says))));
    EXPECT_THAT(one.notes, IsEmpty());
    EXPECT_THAT(planned(training(fmt::format("{}, {}: {}", s.idle, key, s.first))).reasons(), ElementsAre(""))
        << "the default may be written";

    if (*s.acting == '\0') continue;
    const Planned two = planned(training(fmt::format("{}, {}: [{}, {}]", s.acting, key, s.first, s.second)));
    EXPECT_THAT(two.reasons(), ElementsAre("", ""));
    EXPECT_THAT(two.notes, IsEmpty());
  }
}

// If a value has an effect on some points of a block, the other points keep the value, and their names in
// studies do not change.
TEST(Effects, OnSomePointsLeaveAValueToTheOthers) {
  const Planned plan =
      planned(training("strategy: ddp, accumulation: 4, pipeline: [1, 2], pipeline_schedule: gpipe"));
  EXPECT_THAT(plan.reasons(), ElementsAre("", ""));
  EXPECT_EQ(plan.points[0].training.schedule.name, "gpipe");
  EXPECT_THAT(plan.notes, IsEmpty());
  const Planned swept = planned(
      training("strategy: ddp, accumulation: 4, pipeline: [1, 2], pipeline_schedule: [gpipe, zero_bubble]"));
  EXPECT_THAT(swept.reasons(), ElementsAre("", "", ""));
  EXPECT_EQ(swept.points[0].training.schedule.name, "1f1b");
  EXPECT_EQ(swept.notes.size(), 1u);
  EXPECT_THAT(planned(training("strategy: ddp, tensor: [1, 2], sequence_parallel: [false, true]")).reasons(),
              ElementsAre("", "", ""));
}

TEST(Effects, OfOptionsAreTheSame) {
  const auto reasons = [](const char* options) {
    return planned(training(fmt::format("strategy: {{fsdp: {{{}}}}}", options))).reasons();
  };
  EXPECT_THAT(reasons("shard: gradients, prefetch: [1, 2]"), ElementsAre(""));
  EXPECT_THAT(reasons("shard: full, prefetch: [1, 2]"), ElementsAre("", ""));
  EXPECT_THAT(reasons("shard: [full, gradients], prefetch: [1, 2]"), ElementsAre("", "", ""));
  EXPECT_THAT(reasons("shard: [full, gradients], prefetch: 2"), ElementsAre("", ""));
  EXPECT_THAT(reasons("shard: gradients, prefetch: 2"),
              ElementsAre("prefetch 2 of fsdp changes nothing here: shard is gradients, and parameters are "
                          "whole; take shard full, or "
                          "leave prefetch at 1"));
  EXPECT_THAT(
      planned(training("strategy: [{fsdp: {shard: gradients, prefetch: 2}}, {zero3: {prefetch: [1, 2]}}]"))
          .reasons(),
      ElementsAre(HasSubstr("prefetch 2 of fsdp"), "", ""))
      << "an option of another strategy is another one";
  const auto tokens = [](const char* options) {
    return planned(training(fmt::format("strategy: ddp, data: {{tokens: {{files: x.bin, {}}}}}", options)))
        .reasons();
  };
  EXPECT_THAT(tokens("documents: masked, begin: 63"), ElementsAre(""));
  EXPECT_THAT(tokens("begin: 63"),
              ElementsAre(HasSubstr("begin 63 of tokens changes nothing here: documents are joined")));
  EXPECT_THAT(tokens("end: 63"), ElementsAre(HasSubstr("end 63 of tokens changes nothing here")));
  EXPECT_THAT(tokens("documents: packed, begin: 64"),
              ElementsAre(HasSubstr("data tokens: begin 64 is not in the model's vocabulary of 64")));
  EXPECT_THAT(tokens("documents: packed, end: 99999"),
              ElementsAre(HasSubstr("end 99999 is not in the model's vocabulary")));
}

// Values can also lead to the same step although no rule says so.
TEST(Effects, OfEqualStepsAreFoundByTheirPrograms) {
  for (const char* keys :
       {"strategy: {fsdp: {group: [0, 4]}}", "strategy: {ddp: {bucket_mb: [25, 50]}}",
        "strategy: ddp, pipeline: 2, pipeline_schedule: [1f1b, gpipe]",
        "strategy: ddp, checkpointing: [7, 9]", "strategy: {zero3: {persistence: [0, 1]}}"}) {
    const Planned plan = planned(training(keys));
    EXPECT_EQ(plan.points.size(), 1u) << keys;
    EXPECT_EQ(plan.notes.size(), 1u) << keys;
  }
  EXPECT_EQ(planned(training("strategy: {fsdp: {group: [0, 2]}}")).points.size(), 2u);
}

TEST(Effects, OfCollectives) {
  const auto block = [](const char* keys) { return fmt::format("collectives: {{bytes: 64, {}}}", keys); };
  EXPECT_THAT(refusal(block("operation: all_reduce, parts: hot")),
              AllOf(HasSubstr("s.yaml:1:14: parts hot(share=0.5) changes nothing here: all_reduce has equal "
                              "parts; take all_to_all_v")));
  EXPECT_THAT(refusal(block("operation: [all_gather, broadcast], reduction: max")),
              HasSubstr("reduction max changes nothing"));
  EXPECT_EQ(refusal(block("operation: [all_gather, all_reduce], reduction: max")), "accepted");
  EXPECT_EQ(refusal(block("operation: all_to_all, in_place: false")), "accepted");
  EXPECT_EQ(refusal(block("operation: all_gather, reduction: sum, parts: equal")), "accepted");
  const Planned plan = planned(block("operation: all_reduce, parts: [equal, hot, zipf]"));
  EXPECT_EQ(plan.points.size(), 1u);
  EXPECT_THAT(plan.warnings,
              ElementsAre(HasSubstr("parts changes nothing here, so that its values are one point")));
  EXPECT_EQ(planned(block("operation: all_to_all_v, parts: [equal, {zipf: {exponent: 0}}]")).points.size(),
            1u);
  EXPECT_EQ(planned(block("operation: all_to_all_v, parts: [equal, hot]")).points.size(), 2u);
  EXPECT_EQ(planned(block("operation: all_to_all_v, parts: [equal, hot]"), 1).points.size(), 1u);
}

// Describes everything that a point runs, independently of the plan's own comparison.
std::string all_of(const Point& point) {
  const TrainingPoint& t = point.training;
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {}\n", to_text(t.model), t.strategy.name, t.precision,
                  t.batch_size, t.accumulation, t.clip_norm, point.ranks, t.tensor, t.context);
  const strategies::Strategy& how = strategies::strategy(t.strategy.name);
  for (int64_t rank = 0; rank < point.ranks; ++rank) {
    const strategies::RankStep step(point, rank);
    const strategies::Program program = how.step(step.input());
    text += strategies::to_text(program, step.input());
    for (const strategies::CollectiveCall& call : program.calls)
      text += fmt::format("{} {} {} {} {}\n", call.name(), call.bytes, call.process_group.ranks,
                          call.process_group.stride, call.lane);
    for (const strategies::Buffer& buffer : program.buffers)
      text += fmt::format("{} {}\n", static_cast<int>(buffer.element), buffer.numel);
    text += fmt::format("{} {}\n", step.input().bytes.reduce, to_text(program.reduction));
  }
  return text;
}

TEST(Effects, LeaveNoTwoPointsOfOneStep) {
  const std::map<std::string, std::vector<std::string>> values = {
      {"strategy",
       {"ddp", "single", "zero3", "{zero3: {persistence: [0, 1, 40]}}", "{ddp: {bucket_mb: [1, 25]}}",
        "{fsdp: {shard: [full, gradients, optimizer], prefetch: [0, 1, 9]}}", "{fsdp: {group: [0, 2, 4]}}",
        "{hpz: {group: [0, 1, 2]}}", "{ddp: {reduction: [plain, {cast: {to: bf16}}]}}"}},
      {"precision", {"fp32", "bf16", "fp64"}},
      {"reduce_dtype", {"same", "fp32"}},
      {"checkpointing", {"none", "1", "2", "4", "5", "50", "gathered"}},
      {"gathers", {"shared", "own"}},
      {"accumulation", {"1", "2", "4"}},
      {"tensor", {"1", "2"}},
      {"sequence_parallel", {"false", "true"}},
      {"context", {"1", "2"}},
      {"pipeline", {"1", "2"}},
      {"pipeline_schedule", {"1f1b", "gpipe", "zero_bubble", "zero_bubble_v", "interleaved"}},
      {"stages", {"flops", "blocks"}},
      {"rank_order", {"dp-pp", "pp-dp"}},
      {"ranks", {"1", "2", "4"}}};
  std::mt19937_64 random(20261126);
  size_t num_points = 0;
  for (int suite = 0; suite < 40; ++suite) {
    std::string keys = "strategy: [";
    const auto& strategies = values.at("strategy");
    for (int i = 0; i < 3; ++i) keys += (i == 0 ? "" : ", ") + strategies[random() % strategies.size()];
    keys += "]";
    for (const auto& [key, all] : values) {
      if (key == "strategy" || random() % 5 < 3) continue;
      keys += fmt::format(", {}: [{}, {}]", key, all[random() % all.size()], all[random() % all.size()]);
    }
    const std::string text = training(keys);
    SCOPED_TRACE(text);
    std::map<std::string, std::string> known;
    for (const Point& point : planned(text).points) {
      if (!point.impossible.empty()) continue;
      const auto [other, is_new] = known.emplace(all_of(point), to_text(point));
      EXPECT_TRUE(is_new) << to_text(point) << "\n" << other->second;
    }
    num_points += known.size();
  }
  EXPECT_GT(num_points, 100u);
}

// Micro-batches are also accumulated in this type. So it has an effect on a single rank, too, if the strategy
// holds whole gradients.
TEST(Effects, OfTheTypeOfReductionsOnOneRank) {
  const auto reason = [](const std::string& keys) {
    return planned(training("precision: bf16, reduce_dtype: fp32, " + keys), 1).points.at(0).impossible;
  };
  EXPECT_EQ(reason("strategy: ddp, accumulation: 2"), "");
  EXPECT_EQ(reason("strategy: {fsdp: {shard: optimizer}}, accumulation: 2"), "");
  EXPECT_THAT(reason("strategy: ddp"), HasSubstr("one rank has all gradients"));
  EXPECT_THAT(reason("strategy: fsdp, accumulation: 2"), HasSubstr("one rank has all gradients"));
}

// Points whose values have an effect keep the names that earlier versions gave them.
TEST(Effects, LeaveTheNamesOfPoints) {
  for (const char* keys :
       {"strategy: ddp", "strategy: fsdp, gathers: own", "strategy: ddp, pipeline: 2, rank_order: pp-dp",
        "strategy: ddp, precision: bf16, reduce_dtype: fp32", "strategy: ddp, checkpointing: full"}) {
    Point asked = parse_suite(training(keys), "s.yaml").points.at(0);
    asked.ranks = 4;
    const Point point = planned(training(keys)).points.at(0);
    EXPECT_EQ(point.impossible, "");
    EXPECT_EQ(point_id(point), point_id(asked));
  }
}

TEST(Effects, AreAskedForByOnePointToo) {
  Point point = planned(training("strategy: ddp")).points.at(0);
  const auto called = [](const AxisRow& axis) { return "--" + std::string(axis.key); };
  refuse_idle_values(point, called);
  point.training.stages = "blocks";
  try {
    refuse_idle_values(point, called);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--stages: stages blocks changes nothing here"),
                                    HasSubstr("take pipeline 2 or more")));
  }
}

}  // namespace
}  // namespace shardmark
