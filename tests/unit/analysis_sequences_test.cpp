// Tests the table of points that differ only in the length of their sequences: which form a series, and what
// is shown for each.
#include <gmock/gmock.h>

#include "analysis/frame/sequences.h"
#include "analysis/plots/plots.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

Record of_length(int64_t sequence, int64_t batch, double step_s) {
  Record record = training_record("ddp", 2, batch, step_s);
  record.point.training.model.options["sequence"] = sequence;
  record.measures.tokens_per_s = static_cast<double>(sequence) * record.measures.samples_per_s;
  record.id = point_id(record.point);
  return record;
}

std::vector<StudyData> lengths() {
  return {study_of({of_length(512, 1, 0.08), of_length(128, 1, 0.01), of_length(128, 4, 0.03),
                    of_length(256, 2, 0.05), of_length(1024, 3, 0.5)})};
}

TEST(Sequences, ShareTheTokensOrTheSamplesOfAMicroBatch) {
  const std::vector<StudyData> studies = lengths();
  const auto points = merge_repeats(studies);
  const Table table = sequences_table(points);
  std::vector<std::string> rows;
  for (size_t r = 0; r < table.rows.size(); ++r)
    rows.push_back(cell(table, r, "micro-batch").text + ": " + cell(table, r, "sequence").text);
  EXPECT_THAT(rows, testing::ElementsAre("1 sample: 128", "1 sample: 512", "512 tokens: 128",
                                         "512 tokens: 256", "512 tokens: 512"));
}

// The model has 4 layers, width 256 and vocabulary 8192. The FLOPs of a token are products with parameters,
// and attention to all tokens.
TEST(Sequences, SayAttentionsShare) {
  const std::vector<StudyData> studies = lengths();
  const auto points = merge_repeats(studies);
  const Table table = sequences_table(points);
  const double parameters = 4 * 24.0 * 256 * 256 + 2.0 * 256 * 8192, attention = 4 * 4.0 * 512 * 256;
  EXPECT_DOUBLE_EQ(cell(table, 1, "attention").value.get<double>(),
                   100 * attention / (parameters + attention));
}

TEST(Sequences, AreAPlotOfSpeedAndOneOfMemory) {
  const std::vector<StudyData> studies = lengths();
  const auto points = merge_repeats(studies);
  const Plots plots = sequence_plots(points, PlotNames(points));
  ASSERT_EQ(plots.size(), 4u);
  EXPECT_EQ(plots[2].value.label, "tokens/s");
  ASSERT_EQ(plots[2].curves.size(), 1u);
  EXPECT_EQ(plots[2].curves[0].points.size(), 3u);
  EXPECT_DOUBLE_EQ(plots[2].curves[0].points[1].value, 256 * 2 * 2 / 0.05);
}

TEST(Sequences, OfOneLengthAreNoTable) {
  const std::vector<StudyData> studies = {study_of({of_length(128, 1, 0.01), of_length(128, 4, 0.03)})};
  EXPECT_TRUE(sequences_table(merge_repeats(studies)).rows.empty());
}

}  // namespace
}  // namespace shardmark
