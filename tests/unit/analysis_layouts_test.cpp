// Tests the tables and plots of points that train the same model on the same data in different parallel
// layouts: which points are grouped, and what is shown for each.
#include <gmock/gmock.h>

#include "analysis/frame/known.h"
#include "analysis/frame/layouts.h"
#include "analysis/page/page.h"
#include "analysis/page/parts.h"
#include "analysis/plots/plots.h"
#include "analysis/predict/compute_costs.h"
#include "analysis/report.h"
#include "analysis/stats/bubble.h"
#include "analysis_fixture.h"
#include "strategies/stages.h"

namespace shardmark {
namespace {

Record laid_out(int64_t tensor, int64_t pipeline, int64_t micro_batches, double step_s) {
  Record record = training_record("ddp", 4, 2, step_s, 0.2 * step_s);
  TrainingPoint& t = record.point.training;
  t.tensor = tensor, t.pipeline = pipeline, t.accumulation = micro_batches;
  if (tensor > 1) record.measures.exposed_tensor_s = 0.05 * step_s;
  if (pipeline > 1) record.measures.exposed_pipeline_s = 0.1 * step_s;
  record.id = point_id(record.point);
  return record;
}

std::vector<StudyData> study_of_layouts() {
  return {study_of({laid_out(1, 1, 1, 0.3), laid_out(2, 1, 2, 0.1), laid_out(1, 2, 2, 0.2),
                    laid_out(2, 2, 4, 0.4), laid_out(1, 1, 2, 0.5)})};
}

TEST(LayoutsOfATraining, AreThoseOfAGlobalBatch) {
  const auto studies = study_of_layouts();
  const auto points = merge_repeats(studies);
  const Table table = layouts_table(points);
  ASSERT_EQ(table.rows.size(), 4u);
  const double steps_ms[] = {100, 200, 300, 400};
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_DOUBLE_EQ(cell(table, row, "step").value.get<double>(), steps_ms[row]);
    EXPECT_DOUBLE_EQ(cell(table, row, "x fastest").value.get<double>(), steps_ms[row] / 100);
    EXPECT_EQ(cell(table, row, "global batch").value, 8);
  }
  EXPECT_NEAR(cell(table, 0, "waiting for data").value.get<double>(), 15, 1e-9);
  EXPECT_NEAR(cell(table, 0, "waiting for tensor").value.get<double>(), 5, 1e-9);
  EXPECT_NEAR(cell(table, 1, "waiting for stages").value.get<double>(), 10, 1e-9);
  EXPECT_NEAR(cell(table, 3, "waiting for data").value.get<double>(), 5, 1e-9);
}

TEST(LayoutsOfATraining, AreNoneWhereAllAreWhole) {
  const std::vector<StudyData> studies = {
      study_of({training_record("ddp", 4, 2, 0.1), training_record("fsdp", 4, 2, 0.2)})};
  EXPECT_TRUE(layouts_table(merge_repeats(studies)).rows.empty());
}

TEST(LayoutsOfATraining, AreBarsOfTheirParts) {
  const auto studies = study_of_layouts();
  const auto points = merge_repeats(studies);
  const Plots plots = layout_plots(points);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_THAT(plots[0].rows, testing::ElementsAre("tensor 2, ddp", "pipeline 2 (1f1b), ddp", "data, ddp",
                                                  "tensor 2, pipeline 2 (1f1b), ddp"));
  double sum_ms = 0;
  for (const Curve& curve : plots[0].curves)
    for (const PlotPoint& point : curve.points)
      if (point.over == 3) sum_ms += point.value;
  EXPECT_NEAR(sum_ms, 400, 1e-9);
}

TEST(LayoutsOfATraining, ShowTheSchedulesOfTheirPipelines) {
  const auto studies = study_of_layouts();
  const std::string page = make_page(ReportData(studies));
  for (const char* text :
       {"1f1b: 2 stages, 2 micro-batches", "1f1b: 2 stages, 4 micro-batches", "forward of micro-batch 3"})
    EXPECT_TRUE(page.find(text) != std::string::npos) << text;
  EXPECT_THAT(schedules_html({}), "");
}

// Returns a record of a pipeline with two stages. In each micro-batch, a stage takes 1 s forward and 2 s
// backward. `parameters_s` of the backward are for the gradients of parameters. The steps without
// communication took half as long.
Record record_of(const std::string& schedule, int64_t micro_batches, double parameters_s = -1) {
  Record record = training_record("ddp", 2, 2, 100);
  TrainingPoint& t = record.point.training;
  t.pipeline = 2, t.accumulation = micro_batches, t.schedule = choice_from_text(schedule);
  const auto stages = strategies::Stages(*known_point(record.point));
  const auto blocks = std::ssize(known_table(t.model)->blocks);
  Series moments{"block_time", 2, 2 + 2 * blocks,
                 std::vector<double>(static_cast<size_t>(2 * (2 + 2 * blocks)))};
  Series parameters{"parameter_backward_time", 2, blocks,
                    std::vector<double>(static_cast<size_t>(2 * blocks))};
  for (int64_t stage = 0; stage < 2; ++stage) {
    const auto chunks = stages.steps[static_cast<size_t>(stage)].input().all_chunks();
    for (const specs::Chunk& chunk : chunks)
      for (int64_t b = chunk.first_block; b < chunk.first_block + chunk.end - chunk.begin; ++b) {
        const double share = 0.5 / static_cast<double>((chunk.end - chunk.begin) * std::ssize(chunks));
        moments.values[static_cast<size_t>(stage * moments.columns + 1 + b)] = share;
        moments.values[static_cast<size_t>(stage * moments.columns + 1 + blocks + b)] = 2 * share;
        parameters.values[static_cast<size_t>(stage * blocks + b)] = parameters_s * share;
      }
  }
  const auto n = static_cast<double>(micro_batches);
  for (const auto& [name, seconds] :
       {std::pair("step", 100.0), {"data", 0.0}, {"forward", n}, {"backward", 2 * n}, {"optimizer", 0.0}})
    record.samples.push_back({name, 2, 1, {seconds, seconds}});
  record.samples.push_back(moments);
  if (parameters_s >= 0) record.samples.push_back(parameters);
  return record;
}

double bubble_of(const std::string& schedule, int64_t micro_batches, double parameters_s = -1) {
  const std::vector<StudyData> studies = {study_of({record_of(schedule, micro_batches, parameters_s)})};
  return bubble_s(merge_repeats(studies).front());
}

// The bubbles are (P - 1)(F + B) for 1F1B, that divided by the number of chunks for interleaving, and (P - 1)
// max(F, I, F + I - W) for zero bubble; see src/strategies/schedules/README.md.
TEST(Bubble, IsThatOfThePapers) {
  EXPECT_NEAR(bubble_of("1f1b", 4), 3, 1e-9);
  EXPECT_NEAR(bubble_of("gpipe", 8), 3, 1e-9);
  EXPECT_NEAR(bubble_of("interleaved(chunks=2)", 8), 1.5, 1e-9);
  EXPECT_NEAR(bubble_of("zero_bubble", 8), 1, 1e-9);
  EXPECT_NEAR(bubble_of("zero_bubble", 8, 0.8), 1 + 1.2 - 0.8, 1e-9);
}

// The table shows it beside the whole time for which ranks wait for other stages.
TEST(Bubble, IsAColumnOfTheLayouts) {
  Record pipeline = record_of("1f1b", 4), whole = training_record("ddp", 2, 2, 200);
  pipeline.measures.exposed_pipeline_s = 4;
  whole.point.training.accumulation = 2;
  pipeline.point.training.model = whole.point.training.model;
  for (Record* record : {&pipeline, &whole}) record->id = point_id(record->point);
  const std::vector<StudyData> studies = {study_of({pipeline, whole})};
  const auto points = merge_repeats(studies);
  const Table table = layouts_table(points);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_NEAR(cell(table, 0, "waiting for stages").value.get<double>(), 4, 1e-9);
  EXPECT_NEAR(cell(table, 0, "waiting for bubble").value.get<double>(), 3, 1e-9);
}

// A prediction for zero_bubble uses the measured time of the gradients of parameters. Only points whose
// schedule splits the backward have that time.
TEST(TimesOfBlocks, KeepWhatTheGradientsOfParametersTake) {
  const std::vector<StudyData> studies = {study_of({record_of("zero_bubble", 4, 0.8), record_of("1f1b", 4)})};
  const MergedPoints points = merge_repeats(studies);
  ASSERT_EQ(points.size(), 2u);
  std::vector<MeasuredCompute> measured;
  for (const MergedPoint& merged : points)
    measured.push_back(measured_compute(merged, *known_point(merged.point)).value());
  const specs::ModelTable table = *known_table(points.front().point.training.model);
  const ComputeCosts costs(measured);
  Point twice = *known_point(points.front().point);
  twice.training.batch_size *= 2;
  for (const Point& point : {*known_point(points.front().point), twice}) {
    const auto times = costs.times(point, 2, table);
    ASSERT_TRUE(times.has_value());
    ASSERT_EQ(times->backward_weight_s.size(), table.blocks.size());
    for (size_t b = 0; b < table.blocks.size(); ++b)
      EXPECT_NEAR(times->backward_weight_s[b], 0.4 * times->backward_s[b], 1e-9);
    const strategies::Stages stages(point);
    const ComputeTimes second =
        times_of_stage(*times, stages.steps[1], stages.programs[1], stages.programs[0]);
    EXPECT_EQ(second.backward_weight_s.size(), second.backward_s.size());
  }
}

TEST(Bubble, IsNotKnownWithoutTimesOfBlocksOrAPipeline) {
  const auto studies = study_of_layouts();
  for (const MergedPoint& merged : merge_repeats(studies)) EXPECT_TRUE(std::isnan(bubble_s(merged)));
}

}  // namespace
}  // namespace shardmark
