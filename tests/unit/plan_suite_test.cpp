// Tests valid suites: defaults, axes, choices, ranges and anchors, and the suites of this repository.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "plan/plan.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

std::vector<Point> points_in(const std::string& text) { return parse_suite(text, "s.yaml").points; }

TEST(Suite, FillsInDefaults) {
  const Suite suite = parse_suite("training: {model: mlp, strategy: ddp, batch_size: 4}", "dir/one.yaml");
  EXPECT_EQ(suite.name, "one");
  EXPECT_EQ(suite.seed, 1);
  EXPECT_EQ(suite.repeats, 1);
  EXPECT_TRUE(suite.shuffle);
  ASSERT_EQ(suite.points.size(), 1u);
  const Point& point = suite.points.front();
  EXPECT_EQ(point.workload, "training");
  EXPECT_EQ(point.ranks, kWorldSize);
  EXPECT_EQ(point.transport, "");
  EXPECT_EQ(point.training.data.name, "synthetic");
  EXPECT_EQ(point.training.data.options.at("size"), 4096);
  EXPECT_EQ(point.training.optimizer.name, "sgd");
  EXPECT_EQ(point.training.model.options.at("width"), 256);
  EXPECT_EQ(point.training.precision, "fp32");
  EXPECT_EQ(point.training.accumulation, 1);
  EXPECT_EQ(point.training.scaling, "weak");
  EXPECT_EQ(point.sampling.max_steps, Sampling{}.max_steps);
}

TEST(Suite, TransportsAreChoices) {
  std::vector<std::string> texts;
  for (const auto& point :
       points_in("{transport: [mpi, pt2pt, {hierarchical: {form: [leader, sharded], ranks_per_node: 2}}], "
                 "training: {model: mlp, strategy: ddp, batch_size: 1}, "
                 "exclude: {transport: {hierarchical: {form: leader}}}}"))
    texts.push_back(point.transport);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"mpi", "pt2pt", "hierarchical(form=sharded, ranks_per_node=2)"}));
}

TEST(Suite, EveryAxisMultiplies) {
  const auto points = points_in(R"(
ranks: [1, 2, 4]
transport: [mpi, nccl]
training:
  model: [mlp, {gpt2: {layers: [1, 2], width: 8, heads: [1, 2]}}]
  data: {synthetic: {size: [10, 20]}}
  strategy: [single, {fsdp: {shard: [full, optimizer]}}]
  optimizer: [sgd, adamw]
  precision: [fp32, fp64]
  accumulation: [1, 2]
  batch_size: [1, 2]
)");
  EXPECT_EQ(points.size(), 3u * 2 * (1 + 4) * 2 * 3 * 2 * 2 * 2 * 2);
  std::set<std::string> ids;
  for (const auto& point : points) ids.insert(point_id(point));
  EXPECT_EQ(ids.size(), points.size());
}

TEST(Suite, OrderFollowsTheColumns) {
  const auto points =
      points_in("{ranks: [1, 2], training: {model: mlp, strategy: [ddp, zero3], batch_size: [4, 8]}}");
  std::vector<std::string> order;
  for (const auto& p : points)
    order.push_back(p.training.strategy.name + " " + std::to_string(p.training.batch_size) + " " +
                    std::to_string(p.ranks));
  EXPECT_EQ(order, (std::vector<std::string>{"ddp 4 1", "ddp 4 2", "ddp 8 1", "ddp 8 2", "zero3 4 1",
                                             "zero3 4 2", "zero3 8 1", "zero3 8 2"}));
}

TEST(Suite, BlocksInheritAndReplace) {
  const auto points = points_in(R"(
ranks: [1, 2]
sampling: {min_steps: 7, time_limit: 3, duration: 2h}
training:
  - {model: mlp, strategy: ddp, batch_size: 1}
  - {model: mlp, strategy: ddp, batch_size: 1, ranks: 4, sampling: {time_limit: 0.5, duration: 30s}}
)");
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1].ranks, 2);
  EXPECT_EQ(points[2].ranks, 4);
  EXPECT_EQ(points[2].sampling.min_steps, 7);
  EXPECT_DOUBLE_EQ(points[1].sampling.time_limit_s, 3);
  EXPECT_DOUBLE_EQ(points[2].sampling.time_limit_s, 0.5);
  EXPECT_DOUBLE_EQ(points[1].sampling.duration_s, 7200);
  EXPECT_DOUBLE_EQ(points[2].sampling.duration_s, 30);
}

TEST(Suite, SizesAreNumbersTextsAndRanges) {
  const auto sizes = [](const std::string& bytes) {
    std::vector<int64_t> found;
    for (const auto& p : points_in("collectives: {operation: broadcast, bytes: " + bytes + "}"))
      found.push_back(p.collective.bytes);
    return found;
  };
  EXPECT_EQ(sizes("64"), (std::vector<int64_t>{64}));
  EXPECT_EQ(sizes("[8, 4KiB, 25MB]"), (std::vector<int64_t>{8, 4096, 25000000}));
  EXPECT_EQ(sizes("{from: 8, to: 64}"), (std::vector<int64_t>{8, 16, 32, 64}));
  EXPECT_EQ(sizes("{from: 8, to: 1000, factor: 10}"), (std::vector<int64_t>{8, 80, 800}));
  EXPECT_EQ(sizes("[4, {from: 8, to: 16}]"), (std::vector<int64_t>{4, 8, 16}));
  EXPECT_EQ(sizes("{from: 1TiB, to: 1TiB}"), (std::vector<int64_t>{int64_t{1} << 40}));
}

TEST(Suite, AllOperationsTakeOnlyTheAxesThatApply) {
  const auto points =
      points_in("collectives: {operation: all, bytes: 64, reduction: [sum, max], in_place: [true, false]}");
  size_t reducing = 0, out_of_place_only = 0;
  for (const auto& point : points) {
    const auto& c = point.collective;
    const bool reduces =
        c.operation == "all_reduce" || c.operation == "reduce_scatter" || c.operation == "reduce";
    EXPECT_EQ(c.reduction == "none", !reduces) << c.operation;
    reducing += reduces;
    if (c.operation == "all_to_all" || c.operation == "all_to_all_v" || c.operation == "send_recv") {
      EXPECT_FALSE(c.in_place);
      ++out_of_place_only;
    }
  }
  EXPECT_EQ(reducing, 3u * 2 * 2);
  EXPECT_EQ(out_of_place_only, 3u);
  EXPECT_EQ(points.size(), 12u + 3 + 4 * 2);
}

TEST(Suite, ChoicesReadByType) {
  const auto points = points_in(R"(
training:
  model: {mlp: }
  data: {cifar10: {dir: 2024, augment: false}}
  strategy: ddp
  optimizer: {adamw: {lr: 1e-5, eps: 1}}
  batch_size: 1
)");
  const auto& t = points.front().training;
  EXPECT_EQ(t.data.options.at("dir"), "2024");
  EXPECT_EQ(t.data.options.at("augment"), false);
  EXPECT_DOUBLE_EQ(t.optimizer.options.at("lr").get<double>(), 1e-5);
  EXPECT_EQ(t.optimizer.options.at("eps"), 1);
}

TEST(Suite, AnchorsShareValues) {
  const auto points = points_in(R"(
training:
  - {model: &small {gpt2: {layers: 1, width: 8, heads: 1}}, strategy: ddp, batch_size: 1}
  - {model: *small, strategy: zero3, batch_size: 1}
)");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].training.model, points[1].training.model);
}

TEST(Suite, EverySuiteOfTheRepositoryIsValid) {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(SHARDMARK_SOURCE_DIR "/suites")) {
    if (file.path().extension() != ".yaml") continue;
    const Suite suite = read_suite(file.path().string());
    EXPECT_FALSE(suite.description.empty()) << file.path();
    EXPECT_EQ(suite.name, file.path().stem().string());
    for (const auto& point : make_plan(suite, {1 << 20, 0}))
      if (point.ranks <= 8) {
        EXPECT_EQ(point.impossible, "") << file.path() << ": " << to_text(point);
      }
    ++count;
  }
  EXPECT_GE(count, 5u);
}

// A 95 % confidence interval needs at least 6 steps, and the first screen compares all points of a setting.
// The search for the largest batch is exempt because it compares memory.
TEST(Suite, EverySuiteOfTheRepositoryTakesStepsEnoughForAnInterval) {
  for (const auto& file : std::filesystem::directory_iterator(SHARDMARK_SOURCE_DIR "/suites")) {
    if (file.path().extension() != ".yaml") continue;
    const int64_t least = file.path().stem() == "quick" ? 10 : 6;
    for (const Point& point : read_suite(file.path().string()).points)
      if (point.training.batch_size != kLargest) {
        EXPECT_GE(point.sampling.min_steps, least) << file.path() << ": " << to_text(point);
      }
  }
}

TEST(Suite, AcceptAsksForTestsOfNodes) {
  const std::string points = "collectives: {operation: all_reduce, bytes: 8}\n";
  EXPECT_FALSE(parse_suite(points, "s.yaml").accept.has_value());
  const Acceptance defaults = parse_suite("accept: {}\n" + points, "s.yaml").accept.value();
  EXPECT_DOUBLE_EQ(defaults.pairs_s, 25);
  EXPECT_EQ(defaults.storage_bytes, 256 << 20);
  Overrides overrides;
  overrides.set = {"accept.baseline=old.h5", "accept.pairs=2m"};
  const Acceptance changed =
      parse_suite("accept: {pairs: 5s, storage: 1GiB, folder: /scratch}\n" + points, "s.yaml", overrides)
          .accept.value();
  EXPECT_DOUBLE_EQ(changed.pairs_s, 120);
  EXPECT_EQ(changed.storage_bytes, 1 << 30);
  EXPECT_EQ(changed.folder, "/scratch");
  EXPECT_EQ(changed.baseline, "old.h5");
}

// With 2 micro-batches, 4 stages and 1 s forward and 2 s backward per stage, ranks compute 6 s of 15 s.
TEST(Suite, WarnsOfFewerMicroBatchesThanStages) {
  const auto warnings_of = [](const std::string& how) {
    return parse_suite("training: {model: gpt2, batch_size: 4, strategy: ddp, " + how + "}", "s.yaml")
        .warnings;
  };
  EXPECT_EQ(
      warnings_of("pipeline: [1, 2, 4], accumulation: 2"),
      std::vector<std::string>{"s.yaml: pipeline 4 with accumulation 2: of the time of its stages 60 % are "
                               "the bubble of 1f1b, where parts of the model take as long as each other; 4 "
                               "micro-batches or more make it smaller"});
  EXPECT_TRUE(warnings_of("pipeline: 4, accumulation: 4").empty());
}

// Dispatch and combine take the tokens of a mixture, and nothing else does.
TEST(SuiteOfTokens, TakesPartsExpertsAlone) {
  const std::string form = "collectives: {{operation: {}, bytes: 1MiB{}}}";
  const auto parts_in = [&](const std::string& operation, const std::string& parts = "") {
    return points_in(fmt::format(fmt::runtime(form), operation, parts)).front().collective.parts;
  };
  EXPECT_EQ(parts_in("dispatch"),
            "experts(width=7168, experts=256, top_k=8, routing=balanced, once_per=copy)");
  EXPECT_EQ(parts_in("combine", ", parts: {experts: {experts: 8, top_k: 2, once_per: rank}}"),
            "experts(width=7168, experts=8, top_k=2, routing=balanced, once_per=rank)");
  EXPECT_THAT(
      [&] { parts_in("all_to_all_v", ", parts: {experts: {}}"); },
      ThrowsMessage<UsageError>(HasSubstr("parts experts are not for all_to_all_v, which takes equal")));
  EXPECT_THAT(
      [&] { parts_in("dispatch", ", parts: [equal, {zipf: {exponent: 1}}]"); },
      ThrowsMessage<UsageError>(HasSubstr("parts equal are not for dispatch, which takes parts experts")));
  EXPECT_THAT([&] { parts_in("dispatch", ", parts: {experts: {top_k: 9, experts: 8}}"); },
              ThrowsMessage<UsageError>(HasSubstr("s.yaml:1:")));
  EXPECT_EQ(points_in("collectives: {operation: all, bytes: 8}").size(), specs::collectives().size());
}

TEST(SuiteOfTokens, WhatRanksCannotDoIsImpossible) {
  const auto reason = [](const std::string& more, const World& world) {
    const Suite suite = parse_suite("ranks: " + std::to_string(world.ranks) +
                                        "\ncollectives: {operation: dispatch, bytes: 1MiB" + more + "}",
                                    "s.yaml");
    return make_plan(suite, world).front().impossible;
  };
  EXPECT_EQ(reason("", {.ranks = 4}), "");
  EXPECT_THAT(reason("", {.ranks = 6}), HasSubstr("256 experts are not divisible by 6 ranks"));
  EXPECT_THAT(reason(", dtype: int32", {.ranks = 4}), HasSubstr("take another type"));
  EXPECT_THAT(reason(", beside: copy", {.ranks = 4}), HasSubstr("dispatch is measured alone"));
  const std::string by_node = ", parts: {experts: {experts: 24, top_k: 2, once_per: node}}";
  EXPECT_THAT(reason(by_node, {.ranks = 6, .ranks_per_node = 4}),
              HasSubstr("needs full nodes: 6 ranks, 4 per node"));
  EXPECT_EQ(reason(by_node, {.ranks = 8, .ranks_per_node = 4}), "");
  EXPECT_EQ(reason(by_node, {.ranks = 3, .ranks_per_node = 4}), "");
}

}  // namespace
}  // namespace shardmark
