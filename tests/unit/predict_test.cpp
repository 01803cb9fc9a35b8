// Predictions on a study that was made of known links, known computing and the very programs of its points.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analysis/known.h"
#include "analysis/plots/plots.h"
#include "analysis/predict/tables.h"
#include "analysis_fixture.h"
#include "specs/specs.h"
#include "strategies/program_series.h"

namespace shardmark {
namespace {

const specs::Network kTwoLinks{{2e-6, 1 / 20e9}, {10e-6, 1 / 2e9}};
constexpr int64_t kRanksPerNode = 2;
constexpr double kUpdatePerElement = 1e-9, kProgress = 0.4;

// One node of two ranks and nodes of two: seconds a block takes for a sample.
ComputeTimes true_times(const specs::ModelTable& table, const Point& point) {
  const auto batch = static_cast<double>(point.training.batch_size);
  ComputeTimes times;
  times.data_s = 1e-4 * batch;
  for (size_t b = 0; b < table.blocks.size(); ++b) {
    times.forward_s.push_back(1e-3 * batch * static_cast<double>(b + 1));
    times.backward_s.push_back(2.5e-3 * batch * static_cast<double>(b + 1));
  }
  times.update_s = kUpdatePerElement * owned_elements(point, table);
  return times;
}

SimulatedStep true_step(const Point& point, const specs::Network& network = kTwoLinks) {
  const auto table = *known_table(point.training.model);
  const strategies::Program program =
      strategies::strategy(point.training.strategy.name).step(strategies::step_input(point, table));
  std::vector<double> seconds;
  for (const auto& o : program.calls)
    seconds.push_back(specs::collective_s(o.what, o.bytes, span_of(o, kRanksPerNode), network));
  return simulate(program, true_times(table, point), seconds, kProgress);
}

Record measured(const std::string& strategy, int64_t ranks, int64_t batch) {
  Record record = training_record(strategy, ranks, batch, 1);
  const auto table = *known_table(record.point.training.model);
  const SimulatedStep step = true_step(record.point);
  Measures& m = record.measures;
  m.step_s = step.step_s;
  m.step_low_s = 0.999 * step.step_s;
  m.step_high_s = 1.001 * step.step_s;
  m.exposed_s = step.exposed_s;
  const ComputeTimes times = true_times(table, record.point);
  Series block_time{"block_time", ranks, 2 + 2 * static_cast<int64_t>(table.blocks.size()), {}};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    block_time.values.push_back(times.data_s);
    for (const auto* blocks : {&times.forward_s, &times.backward_s})
      block_time.values.insert(block_time.values.end(), blocks->begin(), blocks->end());
    block_time.values.push_back(times.update_s);
  }
  record.samples.push_back(block_time);
  record.samples.push_back(strategies::to_series(strategies::strategy(record.point.training.strategy.name)
                                                     .step(strategies::step_input(record.point, table))));
  record.id = point_id(record.point);
  return record;
}

StudyData study() {
  std::vector<Record> records;
  for (const int64_t ranks : {2, 4, 8}) {
    const specs::Span span{ranks, ranks / kRanksPerNode};
    for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter"})
      for (int64_t bytes = 1024; bytes <= 64 << 20; bytes *= 4)
        records.push_back(
            collective_record(operation, ranks, bytes, true,
                              specs::collective_s(specs::collective(operation).what,
                                                  static_cast<double>(bytes), span, kTwoLinks)));
    for (const char* strategy : {"single", "ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)"})
      for (const int64_t batch : {2, 8}) records.push_back(measured(strategy, ranks, batch));
  }
  StudyData study = study_of(std::move(records));
  study.environment.world_ranks = 8;
  study.environment.devices.assign(8, "Some CPU");
  study.environment.nodes = {"a", "b", "c", "d"};
  study.environment.rank_nodes = {"a", "a", "b", "b", "c", "c", "d", "d"};
  return study;
}

class Predict : public ::testing::Test {
 protected:
  std::vector<StudyData> studies_ = {study()};
  MergedPoints points_ = merge_repeats(studies_);
  std::vector<Predictor> predictors_ = make_predictors(points_);

  const MergedPoint& like() const {
    return *std::find_if(points_.begin(), points_.end(), [](const auto& one) { return is_training(one); });
  }
  Point point(const std::string& strategy, int64_t ranks, int64_t batch) const {
    Point p = like().point;
    p.ranks = ranks;
    p.training.strategy = resolved_strategy(strategy);
    p.training.batch_size = batch;
    return p;
  }
};

TEST_F(Predict, PointsThatWereHeldOut) {
  ASSERT_EQ(predictors_.size(), 1);
  EXPECT_NEAR(predictors_[0].progress(), kProgress, 0.051);
  const auto& held_out = predictors_[0].held_out();
  EXPECT_EQ(held_out.size(), 24);  // but for single
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

// Of repeats in two studies, block times that differ.
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
  stranger.family = "another";
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
  }
  EXPECT_EQ(std::count_if(plots[0].curves.begin(), plots[0].curves.end(),
                          [](const Curve& curve) { return curve.form == Form::dots; }),
            4);  // strategies
}

// How many ranks share a node is the cluster's: a model that was measured on one rank alone has no nodes of
// its own.
TEST_F(Predict, EveryModelLiesOnTheSameNodes) {
  Record alone = measured("ddp", 1, 2);
  alone.point.seed = 7;  // another family
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

// A study of one node says nothing of links between nodes: the table of the best says what to give.
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

// Above 100 % is believed only where both intervals say so.
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
