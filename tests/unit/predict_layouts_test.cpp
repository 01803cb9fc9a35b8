// Tests predictions of parallel layouts that were not measured, from points that do not divide the model, and
// the search for the best layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/predict/predicted_layouts.h"
#include "analysis/predict/shortlist.h"
#include "plan/plan.h"
#include "plan/starts.h"
#include "plan/suite.h"
#include "predict_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

class PredictLayouts : public Predict {
 protected:
  Point laid_out(int64_t tensor, int64_t pipeline, const std::string& strategy = "ddp",
                 const std::string& schedule = "1f1b") const {
    Point p = point(strategy, 8, 2);
    p.training.tensor = tensor;
    p.training.pipeline = pipeline;
    p.training.accumulation = 6;
    const Choice choice = choice_from_text(schedule);
    p.training.schedule =
        resolve(choice, strategies::pipeline_schedule(choice.name).options, "pipeline schedule");
    return p;
  }
  PredictQuery query_of(std::vector<int64_t> ranks) const {
    PredictQuery query;
    query.ranks = std::move(ranks);
    return query;
  }
};

TEST_F(PredictLayouts, TakeWhatTheirStagesTakeTogether) {
  for (const auto& [tensor, pipeline] : {std::pair(2, 1), {1, 2}, {2, 2}, {1, 4}})
    for (const char* strategy : {"ddp", "fsdp", "zero3"}) {
      const Point wanted = laid_out(tensor, pipeline, strategy);
      const Prediction prediction = predictors_[0].predict(like(), wanted, {kRanksPerNode, {}});
      ASSERT_EQ(prediction.unknown, "") << to_text(wanted);
      EXPECT_NEAR(prediction.step_s.value / true_step(wanted).step_s, 1, 0.06) << to_text(wanted);
      EXPECT_EQ(prediction.by_flops, tensor > 1);
      EXPECT_EQ(prediction.stages.size(), static_cast<size_t>(pipeline));
      EXPECT_GT(prediction.memory_bytes, 0);
    }
}

// Steps in which ranks share experts take what those without take to compute, and the exchanges of tokens.
TEST_F(PredictLayouts, OfSharedExpertsAreThoseOfTheirExchanges) {
  const Choice moe = choice_from_text(
      "moe(layers=4, width=256, heads=4, kv_heads=2, inner=512, sequence=128, vocabulary=2048, experts=8)");
  const Choice model = resolve(moe, specs::model_spec("moe").options, "model");
  StudyData study = studies_[0];
  std::erase_if(study.records, [](const Record& record) { return record.point.workload == "training"; });
  for (const int64_t ranks : {2, 4, 8})
    for (const char* strategy : {"ddp", "fsdp", "zero3"})
      study.records.push_back(measured(strategy, ranks, 2, model));
  const std::vector<StudyData> studies = {std::move(study)};
  const MergedPoints points = merge_repeats(studies);
  const std::vector<Predictor> predictors = make_predictors(points);
  const MergedPoint& like =
      *std::find_if(points.begin(), points.end(), [](const auto& one) { return is_training(one); });
  for (const int64_t expert : {2, 4, 8})
    for (const char* strategy : {"ddp", "fsdp", "zero3"}) {
      Point wanted = like.point;
      wanted.ranks = 8;
      wanted.training.strategy = resolved_strategy(strategy);
      wanted.training.expert = expert;
      const Prediction prediction = predictors[0].predict(like, wanted, {kRanksPerNode, {}});
      ASSERT_EQ(prediction.unknown, "") << to_text(wanted);
      EXPECT_NEAR(prediction.step_s.value / true_step(wanted).step_s, 1, 0.06) << to_text(wanted);
      EXPECT_GT(prediction.parts.waited_s[static_cast<size_t>(specs::Dimension::expert)], 0);
    }
  const auto searches =
      search_layouts(predict_all(points, predictors, query_of({8})), predictors, query_of({8}));
  EXPECT_GE(searches.at(0).num_tried, 3 * 4) << "three strategies, and 1, 2, 4 or 8 ranks that share experts";
}

// With fewer micro-batches, a larger part of the step is spent waiting for other stages.
TEST_F(PredictLayouts, HaveBubbles) {
  const auto bubble = [&](const char* schedule, int64_t micro_batches) {
    Point wanted = laid_out(1, 4, "ddp", schedule);
    wanted.training.accumulation = micro_batches;
    const SimulatedStep parts = predictors_[0].predict(like(), wanted, {8, {}, {}}).parts;
    return parts.waited_s[static_cast<size_t>(specs::Dimension::pipeline)] / parts.step_s;
  };
  EXPECT_GT(bubble("1f1b", 4), bubble("1f1b", 16) + 0.05);
  EXPECT_GT(bubble("1f1b", 8), bubble("zero_bubble", 8));
}

TEST_F(PredictLayouts, AreSearched) {
  PredictQuery query = query_of({8});
  query.strategies = {resolved_strategy("ddp"), resolved_strategy("fsdp")};
  query.batch_sizes = {2};
  const auto predicted = predict_all(points_, predictors_, query);
  const std::vector<LayoutSearch> searches = search_layouts(predicted, predictors_, query);
  ASSERT_EQ(searches.size(), 1u);
  const LayoutSearch& search = searches[0];
  ASSERT_EQ(search.found.size(), shortlist_size(4, false));
  EXPECT_EQ(search.num_known, search.num_fit);
  EXPECT_LE(search.num_known, search.num_tried);
  for (size_t i = 0; i < search.found.size(); ++i) {
    const Point& p = search.found[i].prediction.point;
    EXPECT_EQ(p.global_batch(), 16) << to_text(p);
    EXPECT_EQ(p.data_ranks() * p.ranks_per_copy(), 8);
    if (i == 0) continue;
    EXPECT_LE(search.found[i - 1].prediction.step_s.value, search.found[i].prediction.step_s.value);
  }
  const Table table = predicted_layouts_tables(searches, query).at(0);
  EXPECT_THAT(table.notes.at(0), HasSubstr("the fastest of"));
  EXPECT_THAT(table.notes, testing::Contains(how_it_was_checked()));
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("growth of steps with nodes counts in")));
  EXPECT_EQ(cell(table, 0, "nodes").value, 4);
}

// A layout is listed once, with its fastest schedule. The layout that the rule of thumb prefers is also
// listed.
TEST_F(PredictLayouts, AreListedOnceAndWithTheRulesChoice) {
  PredictQuery query = query_of({8});
  query.strategies = {resolved_strategy("ddp"), resolved_strategy("fsdp(shard=optimizer)")};
  query.batch_sizes = {1, 2};
  query.global_batch = 64;
  const auto searches = search_layouts(predict_all(points_, predictors_, query_of({8})), predictors_, query);
  std::set<std::string> seen;
  bool has_rules = false;
  for (const PredictedPoint& one : searches.at(0).found) {
    Point p = one.prediction.point;
    has_rules = has_rules || (p.ranks_per_copy() == 1 && p.training.batch_size == 2 &&
                              p.training.strategy == resolved_strategy("fsdp(shard=optimizer)"));
    p.training.schedule = TrainingPoint().schedule;
    EXPECT_TRUE(seen.insert(point_id(p)).second) << to_text(p);
  }
  EXPECT_TRUE(has_rules);
}

TEST_F(PredictLayouts, AreShortlistedWithTheRulesChoice) {
  std::vector<Point> points;
  for (const auto& [tensor, pipeline] : {std::pair(2, 2), {2, 1}, {1, 4}, {1, 1}, {4, 1}})
    points.push_back(laid_out(tensor, pipeline));
  std::vector<LayoutCandidate> all;
  for (size_t i = 0; i < points.size(); ++i) all.push_back({&points[i], static_cast<double>(5 - i % 4)});
  // Sorted by step: 3 (2 s), 2 (3 s), 1 (4 s), then 0 and 4 (5 s).
  EXPECT_THAT(shortlist(all, 2), testing::ElementsAre(3u, 2u));
  EXPECT_THAT(shortlist(all, 9), testing::ElementsAre(3u, 2u, 1u, 0u, 4u));
  all[3].step_s = 9;  // this is the layout of the rule of thumb
  EXPECT_THAT(shortlist(all, 3), testing::ElementsAre(2u, 1u, 3u));
  EXPECT_TRUE(is_before_by_rule(points[3], points[1]));
  EXPECT_TRUE(is_before_by_rule(points[1], points[2]));
  Point stage_1 = laid_out(1, 1, "fsdp(shard=optimizer)"), larger = stage_1;
  EXPECT_TRUE(is_before_by_rule(stage_1, points[3]));
  EXPECT_TRUE(is_before_by_rule(stage_1, laid_out(1, 1, "fsdp")));
  larger.training.batch_size = 4;
  EXPECT_TRUE(is_before_by_rule(larger, stage_1));
  EXPECT_LT(shortlist_size(8, false), shortlist_size(9, true));
  EXPECT_LT(shortlist_size(9, true), shortlist_size(9, false));
}

// The suite plans exactly the layouts of the table, with all their options, and each in three starts of the
// ranks.
TEST_F(PredictLayouts, BecomeASuite) {
  PredictQuery query = query_of({8});
  query.batch_sizes = {2};
  query.global_batch = 64;
  auto searches = search_layouts(predict_all(points_, predictors_, query_of({8})), predictors_, query);
  std::vector<PredictedPoint>& found = searches.at(0).found;
  found.push_back(found.front());
  TrainingPoint& pipeline = found.back().prediction.point.training;
  pipeline.pipeline = 4;
  pipeline.schedule = laid_out(1, 4, "ddp", "zero_bubble").training.schedule;
  const std::string text = shortlist_suite(searches, query);
  std::vector<std::string> wanted, planned;
  for (const PredictedPoint& one : searches.at(0).found) {
    Point p = one.prediction.point;
    p.environment = "bind=auto";
    wanted.push_back(point_id(p));
  }
  const std::vector<Point> plan = make_plan(parse_suite(text, "layouts.yaml"), {.ranks = 8});
  for (const Point& p : plan) {
    EXPECT_EQ(p.impossible, "") << text;
    if (p.repeat == 0) planned.push_back(point_id(p));
  }
  EXPECT_THAT(planned, testing::UnorderedElementsAreArray(wanted)) << text;
  EXPECT_EQ(plan.size(), 3 * wanted.size());
  EXPECT_EQ(starts_of(plan).size(), 3u);
  for (const char* key : {"model: ", "strategy: ", "optimizer: ", "precision: ", "checkpointing: none",
                          "accumulation: ", "tensor: ", "pipeline: ", "pipeline_schedule: ", "batch_size: 2"})
    EXPECT_THAT(text, HasSubstr(key));

  query.memory_bytes = 1;
  const auto large = search_layouts(predict_all(points_, predictors_, query_of({8})), predictors_, query);
  EXPECT_THROW(shortlist_suite(large, query), UsageError);
}

// If no copy of the model fits on one rank, layouts that divide it do.
TEST_F(PredictLayouts, ThatFitComeFirst) {
  PredictQuery query = query_of({8});
  query.strategies = {resolved_strategy("ddp")};
  query.batch_sizes = {2};
  const auto whole = predictors_[0].predict(like(), point("ddp", 8, 2), {kRanksPerNode, {}});
  query.memory_bytes = 0.6 * whole.memory_bytes;
  const auto searches = search_layouts(predict_all(points_, predictors_, query), predictors_, query);
  const LayoutSearch& search = searches.at(0);
  EXPECT_GT(search.num_fit, 0);
  EXPECT_LT(search.num_fit, search.num_known);
  EXPECT_TRUE(search.found.front().fits);
  EXPECT_GT(search.found.front().prediction.point.ranks_per_copy(), 1);
  query.memory_bytes = 1;
  const Table none = predicted_layouts_tables(
                         search_layouts(predict_all(points_, predictors_, query), predictors_, query), query)
                         .at(0);
  EXPECT_THAT(none.notes.at(0), HasSubstr("Shown are those that need least."));
}

// If no layout is possible, the notes suggest a larger global batch or smaller micro-batches, and both work.
TEST_F(PredictLayouts, SayWhatWouldHaveOne) {
  const auto tables_of = [&](const PredictQuery& query) {
    return predicted_layouts_tables(
        search_layouts(predict_all(points_, predictors_, query), predictors_, query), query);
  };
  PredictQuery query = query_of({8});
  query.global_batch = 24;
  query.batch_sizes = {5};
  std::string why;
  try {
    tables_of(query);
  } catch (const UsageError& error) {
    why = error.what();
  }
  EXPECT_THAT(why, HasSubstr("no layout of 8 ranks takes a global batch of 24; take --global-batch 25 ("));
  EXPECT_THAT(why, HasSubstr("), or --batch-size 4 ("));
  query.global_batch = 25;
  EXPECT_FALSE(tables_of(query).empty());
  query.global_batch = 24;
  query.batch_sizes = {4};
  EXPECT_FALSE(tables_of(query).empty());
  EXPECT_THROW(predicted_layouts_tables({}, query), UsageError);
}

}  // namespace
}  // namespace shardmark
