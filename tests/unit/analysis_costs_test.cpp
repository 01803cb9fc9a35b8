// Tests the costs of training: all points that train the same model on the same data are compared with the
// cheapest of them.
#include <gtest/gtest.h>

#include <functional>

#include "analysis_fixture.h"

namespace shardmark {
namespace {

Record changed(double step_s, const std::function<void(Point&)>& change) {
  Record record = training_record("ddp", 4, 2, step_s);
  change(record.point);
  record.id = point_id(record.point);
  return record;
}

// Returns the values of the column "x cheapest", sorted.
std::vector<double> ratios(const std::vector<StudyData>& studies) {
  const Table table = strategies_table(merge_repeats(studies), 3);
  std::vector<double> ratios;
  for (size_t row = 0; row < table.rows.size(); ++row)
    ratios.push_back(cell(table, row, "x cheapest").value.get<double>());
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

TEST(Costs, LayoutsAndSettingsOfATrainingAreCompared) {
  const auto t = [](auto set) { return [set](Point& point) { set(point.training); }; };
  const std::vector<std::function<void(Point&)>> changes = {
      t([](TrainingPoint& p) { p.tensor = 2; }),
      t([](TrainingPoint& p) { p.tensor = 2, p.sequence_parallel = true; }),
      t([](TrainingPoint& p) { p.context = 2; }),
      t([](TrainingPoint& p) { p.pipeline = 2; }),
      t([](TrainingPoint& p) {
        p.pipeline = 2, p.schedule = {"gpipe", {}};
      }),
      t([](TrainingPoint& p) { p.pipeline = 2, p.stages = "blocks"; }),
      t([](TrainingPoint& p) { p.pipeline = 2, p.rank_order = "pp-dp"; }),
      t([](TrainingPoint& p) { p.recompute = 1; }),
      t([](TrainingPoint& p) { p.kernels = "fused"; }),
      t([](TrainingPoint& p) { p.graph = true; }),
      t([](TrainingPoint& p) { p.gathers = "own"; }),
      t([](TrainingPoint& p) { p.accumulation = 4; }),
      t([](TrainingPoint& p) { p.reduce_dtype = "fp32"; }),
      t([](TrainingPoint& p) { p.clip_norm = 1; }),
      t([](TrainingPoint& p) { p.batch_size = 8; }),
      t([](TrainingPoint& p) { p.strategy = resolved_strategy("zero3"); }),
      [](Point& point) { point.ranks = 2; },
      [](Point& point) { point.transport = "tcp"; },
      [](Point& point) { point.environment = "NCCL_ALGO=Ring"; }};
  for (const auto& change : changes) {
    // The second point is half as fast, whatever `change` did to the number of samples and ranks.
    Record cheap = training_record("ddp", 4, 2, 0.1), dear = changed(0.2, change);
    dear.measures.samples_per_s =
        cheap.measures.samples_per_s / 2 * static_cast<double>(dear.point.ranks) / 4;
    const auto found = ratios({study_of({cheap, dear})});
    ASSERT_EQ(found.size(), 2u) << to_text(dear.point);
    EXPECT_DOUBLE_EQ(found[0], 1) << to_text(dear.point);
    EXPECT_DOUBLE_EQ(found[1], 2) << to_text(dear.point);
  }
}

TEST(Costs, OtherTrainingsAndDevicesAreNot) {
  const auto alone = [](const Record& dear, const std::string& device) {
    StudyData other = study_of({dear}, "results/other.h5");
    for (std::string& name : other.environment.devices) name = device;
    return ratios({study_of({training_record("ddp", 4, 2, 0.1)}), other}) == std::vector<double>{1, 1};
  };
  EXPECT_TRUE(alone(training_record("ddp", 4, 2, 0.2), "Another CPU"));
  EXPECT_TRUE(alone(changed(0.2, [](Point& p) { p.training.precision = "bf16"; }), "Some CPU"));
  EXPECT_TRUE(alone(changed(0.2, [](Point& p) { p.training.optimizer = {"sgd", {}}; }), "Some CPU"));
  EXPECT_TRUE(alone(changed(0.2, [](Point& p) { p.training.data = {"text", {}}; }), "Some CPU"));
  EXPECT_TRUE(alone(changed(0.2, [](Point& p) { p.training.model = {"mlp", {}}; }), "Some CPU"));
  EXPECT_FALSE(alone(changed(0.2, [](Point& p) { p.training.recompute = 1; }), "Some CPU"));
}

// Three launches that agree show that a point costs more, although its steps are shorter: it has twice the
// ranks.
TEST(Costs, OfOneLaunchAreMarked) {
  const auto marks = [](const std::vector<double>& factors) {
    std::vector<StudyData> studies;
    for (const double factor : factors) {
      Record cheap = training_record("ddp", 2, 2, 0.1 * factor),
             dear = training_record("ddp", 4, 2, 0.09 * factor);
      dear.measures.samples_per_s = cheap.measures.samples_per_s / 0.9;
      studies.push_back(study_of({cheap, dear}, "results/" + std::to_string(studies.size()) + ".h5"));
    }
    const Table table = strategies_table(merge_repeats(studies), 3);
    std::map<std::string, std::string> texts;  // by ranks
    for (size_t row = 0; row < table.rows.size(); ++row)
      texts[cell(table, row, "ranks").text] = cell(table, row, "x cheapest").text;
    return texts;
  };
  const auto one = marks({1}), three = marks({1, 1.001, 0.999}), apart = marks({1, 3, 0.3});
  EXPECT_EQ(one.at("2"), "1.00");
  EXPECT_EQ(one.at("4"), "1.80 ?");
  EXPECT_EQ(three.at("4"), "1.80");
  EXPECT_EQ(apart.at("4"), "1.80 ?");
}

TEST(Costs, CopiesThatTrainApartHaveNone) {
  const std::vector<StudyData> studies = {
      study_of({training_record("single", 4, 2, 0.1), training_record("ddp", 4, 2, 0.2)})};
  const MergedPoints points = merge_repeats(studies);
  const Table table = strategies_table(points, 3);
  for (size_t row = 0; row < points.size(); ++row)
    EXPECT_EQ(cell(table, row, "x cheapest").value.is_nothing(),
              cell(table, row, "strategy").text == "single");
  for (const Column& column : strategies_table(points).columns) EXPECT_NE(column.name, "x cheapest");
}

}  // namespace
}  // namespace shardmark
