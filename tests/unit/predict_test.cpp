// Tests predictions on a study computed from known links, known compute times and the actual programs of its
// points.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analysis/plots/plots.h"
#include "analysis/predict/left_out.h"
#include "predict_fixture.h"

namespace shardmark {
namespace {

TEST_F(Predict, PointsThatWereHeldOut) {
  ASSERT_EQ(predictors_.size(), 1);
  EXPECT_NEAR(predictors_[0].progress(), kProgress, 0.051);
  const auto& held_out = predictors_[0].held_out();
  EXPECT_EQ(held_out.size(), 24);  // all but `single`
  for (const HeldOut& held : held_out)
    EXPECT_NEAR(held.error(), 0, 0.03)
        << held.merged->strategy << " " << held.merged->point.ranks << " ranks";
  EXPECT_EQ(held_out_table(points_, predictors_).rows.size(), held_out.size());
}

TEST_F(Predict, OtherNumbersOfRanks) {
  for (const char* strategy : {"ddp", "fsdp", "fsdp(shard=optimizer)", "fsdp(group=2)"})
    for (const int64_t ranks : {16, 64}) {
      const Point wanted = point(strategy, ranks, 4);
      const Prediction prediction = predictors_[0].predict(like(), wanted, {kRanksPerNode, {}});
      ASSERT_EQ(prediction.unknown, "") << strategy;
      const double truth = true_step(wanted).step_s;
      EXPECT_NEAR(prediction.step_s.value / truth, 1, 0.04) << strategy << " " << ranks;
      EXPECT_LE(prediction.step_s.low, prediction.step_s.value);
      EXPECT_GE(prediction.step_s.high, prediction.step_s.value);
    }
}

// The two studies contain repeats whose block times differ.
TEST_F(Predict, TheOrderOfStudiesChangesNothing) {
  StudyData later = study();
  later.environment.started = "2026-02-02T00:00:00Z";
  for (Record& record : later.records)
    for (Series& series : record.samples)
      if (series.name == "block_time") series.values.front() *= 30;
  const Point wanted = point("ddp", 16, 4);
  std::vector<double> steps;
  for (const bool swapped : {false, true}) {
    std::vector<StudyData> both = {study(), later};
    if (swapped) std::swap(both[0], both[1]);
    const MergedPoints points = merge_repeats(both);
    steps.push_back(
        make_predictors(points)[0]
            .predict(*std::find_if(points.begin(), points.end(), is_training), wanted, {kRanksPerNode, {}})
            .step_s.value);
  }
  EXPECT_EQ(steps[0], steps[1]);
}

// Points with warnings and points without block times are listed separately, because they need different
// remedies.
TEST_F(Predict, NamesWhatItDoesNotUse) {
  EXPECT_TRUE(why_unused(points_).empty());
  StudyData other = study();
  int64_t count = 0;
  for (Record& record : other.records) {
    if (record.point.workload != "training") continue;
    if (++count <= 3) record.measures.step_high_s = 3 * record.measures.step_s;
    if (count > 3 && count <= 5)
      std::erase_if(record.samples, [](const Series& s) { return s.name == "block_time"; });
  }
  const std::vector<StudyData> studies = {other};
  EXPECT_THAT(
      why_unused(merge_repeats(studies)),
      testing::ElementsAre(testing::StartsWith("3 training points carry warnings (uncertain): measure"),
                           testing::StartsWith("2 training points have no times of blocks")));
}

TEST_F(Predict, AnotherNetwork) {
  const specs::Link fast{"fast", 1e-6, 50e9, ""};
  const Point wanted = point("fsdp", 8, 8);
  const Prediction prediction = predictors_[0].predict(like(), wanted, {kRanksPerNode, fast});
  specs::Network network = kTwoLinks;
  network.across = {1e-6, 1 / 50e9};
  EXPECT_NEAR(prediction.step_s.value / true_step(wanted, network).step_s, 1, 0.04);
}

TEST_F(Predict, WhatCannotBeKnownSaysWhy) {
  Point odd = point("fsdp(group=3)", 8, 2);
  EXPECT_NE(predictors_[0].predict(like(), odd, {kRanksPerNode, {}}).unknown, "");
  MergedPoint stranger = like();
  stranger.point.training.precision = "another";
  EXPECT_NE(predictors_[0].predict(stranger, point("ddp", 8, 2), {kRanksPerNode, {}}).unknown, "");
  const StudyData without_collectives = [] {
    StudyData only_training = study();
    std::erase_if(only_training.records, [](const Record& r) { return r.point.workload == "collective"; });
    return only_training;
  }();
  const std::vector<StudyData> studies = {without_collectives};
  const MergedPoints points = merge_repeats(studies);
  const auto predictors = make_predictors(points);
  EXPECT_TRUE(predictors[0].held_out().empty() ||
              predictors[0].held_out().front().merged->point.training.strategy.name == "single");
  EXPECT_NE(predictors[0].predict(points.front(), point("ddp", 8, 2), {kRanksPerNode, {}}).unknown, "");
}

TEST_F(Predict, PlotMarksEveryHeldOutPoint) {
  const Plots plots = prediction_plots(points_, PlotNames(points_));
  ASSERT_EQ(plots.size(), 1);
  const auto count = [&](const PlotPoint& wanted) {
    int64_t found = 0;
    for (const Curve& curve : plots[0].curves)
      if (curve.form == Form::dots)
        found += std::count_if(curve.points.begin(), curve.points.end(), [&](const PlotPoint& one) {
          return one.over == wanted.over && one.value == wanted.value;
        });
    return found;
  };
  for (const HeldOut& held : predictors_[0].held_out()) {
    EXPECT_GE(count({1e3 * held.merged->measures.step_s, 1e3 * held.predicted.step_s}), 1)
        << held.merged->strategy;
    // There is one curve for each of the 4 strategies.
  }
  EXPECT_EQ(std::count_if(plots[0].curves.begin(), plots[0].curves.end(),
                          [](const Curve& curve) { return curve.form == Form::dots; }),
            4);
}

// The number of ranks per node is a property of the cluster. A model that was measured only on one rank gets
// it from the other models.
TEST_F(Predict, EveryModelLiesOnTheSameNodes) {
  Record alone = measured("ddp", 1, 2);
  alone.point.seed = 7;  // makes it another family
  studies_[0].records.push_back(alone);
  const MergedPoints points = merge_repeats(studies_);
  PredictQuery query;
  query.ranks = {2};
  const auto predictors = make_predictors(points);
  const Table table = predictions_table(points, predict_all(points, predictors, query), query);
  std::set<std::string> seeds;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    seeds.insert(cell(table, row, "seed").text);
    EXPECT_EQ(cell(table, row, "nodes").value, 1) << cell(table, row, "seed").text;
  }
  EXPECT_EQ(seeds.size(), 2);
}

TEST_F(Predict, TheBestThatFits) {
  PredictQuery query;
  query.ranks = {8};
  const auto predicted = predict_all(points_, predictors_, query);
  const Table unlimited = best_table(points_, predicted, query);
  ASSERT_EQ(unlimited.rows.size(), 1);
  double best = 0;
  for (const PredictedPoint& one : predicted)
    best = std::max(best, 8.0 * static_cast<double>(one.prediction.point.training.batch_size) /
                              one.prediction.step_s.value);
  EXPECT_NEAR(cell(unlimited, 0, "throughput").value.get<double>(), best, 1e-3 * best);

  query.memory_bytes = 1;
  EXPECT_TRUE(best_table(points_, predict_all(points_, predictors_, query), query).rows.empty());
  query.memory_bytes = Measures::kNone;
  query.ranks = {2, 3, 4};
  query.global_batch = 16;
  std::set<int64_t> known;
  for (const PredictedPoint& one : predict_all(points_, predictors_, query)) {
    const Point& p = one.prediction.point;
    if (p.ranks == 3) {
      EXPECT_EQ(one.prediction.unknown, "the ranks do not divide the global batch of 16");
      continue;
    }
    EXPECT_EQ(one.prediction.unknown, "");
    EXPECT_EQ(p.global_batch(), 16);
    known.insert(p.ranks);
  }
  EXPECT_EQ(known, (std::set<int64_t>{2, 4}));
}

// A study on one node has no information about links between nodes. The table of the best points says which
// flag provides it.
TEST_F(Predict, WhatIsLeftOutHasAReason) {
  std::erase_if(studies_[0].records, [](const Record& record) { return record.point.ranks > kRanksPerNode; });
  const MergedPoints points = merge_repeats(studies_);
  const auto predictors = make_predictors(points);
  PredictQuery query;
  const auto notes_of = [&](std::vector<int64_t> ranks, double memory_bytes = Measures::kNone) {
    query.ranks = std::move(ranks);
    query.memory_bytes = memory_bytes;
    const Table table = best_table(points, predict_all(points, predictors, query), query);
    return std::pair(table.rows.size(), table.notes.size() < 2 ? "" : table.notes.at(1));
  };
  EXPECT_EQ(notes_of({2}), std::pair(size_t{1}, std::string()));
  const auto [num_rows, beyond] = notes_of({2, 4, 16});
  EXPECT_EQ(num_rows, 1u);
  EXPECT_THAT(beyond, ::testing::ContainsRegex("^Left out: 4 ... 16 ranks \\([0-9]+ points, such as ddp with "
                                               "batch 2\\): no link between nodes was measured; give "
                                               "--network\\.$"));
  const auto [num_fitting, large] = notes_of({2}, 1 << 20);
  EXPECT_EQ(num_fitting, 0u);
  EXPECT_THAT(large, ::testing::HasSubstr("2 ranks (")) << large;
  EXPECT_THAT(large, ::testing::ContainsRegex(": nothing fits into 1.00 MiB; the least is [0-9.]+ MiB, of "));
  query.network = specs::Link{"fast", 1e-6, 50e9, ""};
  EXPECT_EQ(notes_of({2, 4, 16}).first, 3u);
}

// An efficiency above 100 % is credible only if both intervals support it.
TEST_F(Predict, EfficiencyAboveAllIsMarked) {
  PredictQuery query;
  query.ranks = {2};
  query.strategies = {resolved_strategy("ddp")};
  query.batch_sizes = {2};
  std::vector<PredictedPoint> predicted = predict_all(points_, predictors_, query);
  ASSERT_EQ(predicted.size(), 1u);
  predicted[0].prediction.step_s = {1.0, 0.9, 1.1};
  const auto efficiency = [&](const Estimate& one_rank_s) {
    predicted[0].one_rank_s = one_rank_s;
    return cell(predictions_table(points_, predicted, query), 0, "efficiency");
  };
  EXPECT_EQ(efficiency({1.2, 1.0, 1.4}).text, "120.0 ?");
  EXPECT_EQ(efficiency({1.2, NAN, NAN}).text, "120.0 ?");
  EXPECT_EQ(efficiency({1.2, 1.15, 1.3}).text, "120.0");
  EXPECT_EQ(efficiency({0.9, 0.8, 1.2}).text, "90.0");
  EXPECT_EQ(efficiency({1.2, 1.0, 1.4}).value, 120.0);
}

}  // namespace
}  // namespace shardmark
