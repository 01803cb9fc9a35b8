// Compares the whole text report with tests/data/report.txt, and measures how long a report on 10,000 points
// takes.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/overview/overview.h"
#include "analysis/report.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

std::string text_of(const std::vector<Table>& tables) {
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + to_text(table);
  return text;
}

StudyData small_study() {
  std::vector<Record> records;
  for (int64_t ranks : {1, 2, 4}) {
    const auto n = static_cast<double>(ranks);
    records.push_back(training_record("single", ranks, 4, 0.100));
    records.push_back(training_record("ddp", ranks, 4, 0.100 + 0.004 * (n - 1), 0.003 * (n - 1)));
    records.push_back(training_record("fsdp", ranks, 4, 0.100 + 0.006 * (n - 1), 0.005 * (n - 1)));
  }
  records.push_back(training_record("zero3", 4, 4, 0.120, 0.018));
  for (int64_t ranks : {1, 2, 4, 8}) {  // global batch 16, serial fraction 5 %
    const auto n = static_cast<double>(ranks);
    records.push_back(training_record("ddp", ranks, 16 / ranks, 0.4 * (0.05 + 0.95 / n), 0.01));
    records.back().point.training.scaling = "strong";
    if (ranks == 4) records.back().point.repeat = 1;  // weak scaling includes the same point
    records.back().id = point_id(records.back().point);
  }
  records.back().measures.verified = "unverified: the model does not fit one device";
  for (int64_t bytes : {8, 1024, 1 << 20})
    for (bool in_place : {false, true})
      records.push_back(
          collective_record("all_reduce", 4, bytes, in_place, 5e-6 + static_cast<double>(bytes) / 4e9));
  for (int64_t batch : {4, 8}) {
    records.push_back(training_record("ddp", 16, batch, 1));
    records.back().outcome = Outcome::skipped;
    records.back().reason = "needs 16 ranks, the world has 8";
  }
  return study_of(std::move(records));
}

TEST(Report, ReadsAsTheGoldenText) {
  const std::string path = std::string(SHARDMARK_TEST_DATA) + "/report.txt";
  std::ifstream file(path, std::ios::binary);
  std::stringstream golden;
  golden << file.rdbuf();
  std::vector<Table> tables = make_report({small_study()});
  say_names_once(tables);
  const std::string text = text_of(tables);
  if (text == golden.str()) return;
  const auto actual = std::filesystem::temp_directory_path() / "shardmark-report.txt";
  std::ofstream(actual, std::ios::binary) << text;
  FAIL() << "the report changed; if it reads well: cp " << actual << " " << path;
}

// If samples are tokens, people read only one of the two columns. Programs get both.
TEST(Report, SpeaksOfTokensWhereSamplesAreTokens) {
  Record images = training_record("ddp", 2, 4, 0.1);
  images.measures.tokens_per_s = Measures::kNone;
  const std::vector<StudyData> tokens = {study_of({training_record("ddp", 2, 4, 0.1)})},
                               samples = {study_of({images})};
  const Table of_tokens = strategies_table(merge_repeats(tokens)),
              of_samples = strategies_table(merge_repeats(samples));
  const auto seen = [](const Table& table, const char* word) {
    return to_text(table, Explanations::left_out).find(word) != std::string::npos;
  };
  EXPECT_TRUE(seen(of_tokens, " tokens/s  tokens/s/rank") && !seen(of_tokens, "samples/s"));
  EXPECT_TRUE(seen(of_samples, " samples/s ") && !seen(of_samples, "tokens/s"));
  EXPECT_EQ(cell(of_tokens, 0, "samples/s").value, 80);
  EXPECT_EQ(cell(of_tokens, 0, "tokens/s/rank").value, 40 * 128);
}

TEST(Report, KnowsNothingOfAnotherProgramsChoices) {
  Record record = training_record("ddp", 2, 4, 0.1);
  record.point.training.model = {"future_model", {{"depth", 7}}};
  record.point.training.strategy = {"future_strategy"};
  record.point.training.optimizer = {"future_optimizer"};
  const std::string text = text_of(make_report({study_of({record})}));
  EXPECT_NE(text.find("future_model(depth=7)"), std::string::npos) << text;
  EXPECT_NE(text.find("future_strategy"), std::string::npos) << text;
}

TEST(Report, SaysWhatWasNotMeasured) {
  Record record = training_record("ddp", 2, 4, 0.1);
  record.measures = {};
  record.measures.step_s = 0.1;
  const Table table = strategies_table(merge_repeats({study_of({record})}));
  EXPECT_EQ(cell(table, 0, "peak memory").text, "-");
  EXPECT_TRUE(cell(table, 0, "peak memory").value.is_nothing());
  EXPECT_EQ(cell(table, 0, "MFU").text, "-");
  EXPECT_EQ(cell(table, 0, "verified").text, "no");
}

TEST(Report, CollectivesHaveATablePerOperationAndRankCount) {
  Record apart = collective_record("all_reduce", 2, 1 << 20, false, 1e-3);
  apart.measures.num_wrong = 3;
  const auto tables =
      collective_tables(merge_repeats({study_of({collective_record("all_reduce", 4, 8, true, 5e-6), apart,
                                                 collective_record("all_reduce", 2, 1 << 20, true, 0.5e-3),
                                                 collective_record("broadcast", 2, 1 << 20, true, 1e-3)})}));
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].key, "collectives.all_reduce_2");
  EXPECT_EQ(tables[1].key, "collectives.all_reduce_4");
  EXPECT_EQ(tables[2].key, "collectives.broadcast_2");
  ASSERT_EQ(tables[0].rows.size(), 1u);  // in place and out of place share a row
  EXPECT_EQ(cell(tables[0], 0, "count").text, "262,144");
  EXPECT_EQ(cell(tables[0], 0, "out-of-place algbw").text, "1.05");
  EXPECT_EQ(cell(tables[0], 0, "out-of-place #wrong").text, "3");
  EXPECT_EQ(cell(tables[0], 0, "in-place busbw").text, "2.10");  // the factor 2(n-1)/n is 1 for two ranks
  EXPECT_EQ(cell(tables[0], 0, "root").text, "-1");
  EXPECT_EQ(cell(tables[2], 0, "count").text, "262,144");
  EXPECT_EQ(cell(tables[2], 0, "root").text, "0");
  EXPECT_EQ(cell(tables[2], 0, "out-of-place time").text, "-");
}

TEST(Report, CountsOnePartOfACutMessageAsNcclTestsDoes) {
  const auto tables =
      collective_tables(merge_repeats({study_of({collective_record("all_gather", 4, 1024, true, 1e-5)})}));
  EXPECT_EQ(cell(tables[0], 0, "size").text, "1,024");
  EXPECT_EQ(cell(tables[0], 0, "count").text, "64");  // 1024 bytes / 4 bytes per element / 4 ranks
}

TEST(Report, DoubtsWhatCannotBe) {
  Record record = training_record("ddp", 2, 4, 0.1);
  record.measures.peak_flops = 1e9;  // 8e10 FLOP in 0.1 s are 800 times as many
  const std::vector<StudyData> studies = {study_of({record})};
  const auto points = merge_repeats(studies);
  EXPECT_EQ(cell(strategies_table(points), 0, "warnings").text, "above matmul");
  EXPECT_EQ(cautions_of(studies, points, {}).at(0).substr(0, 57),
            "above matmul: 1 point, training gpt2(layers=4, width=256,");
}

Record with_interval(Record record, double low_s, double high_s) {
  record.measures.step_low_s = low_s;
  record.measures.step_high_s = high_s;
  return record;
}

// Returns the warnings of ddp if its step is compared with that of `single`.
std::string ratio_warnings(const Record& ddp, const Record& single) {
  const std::vector<StudyData> studies = {study_of({ddp, single})};
  const Table table = strategies_table(merge_repeats(studies));
  return cell(table, 1, "warnings").text;
}

TEST(Report, MarksARatioToSingleThatSaysLittle) {
  const Record single = training_record("single", 2, 4, 0.1);
  const Record vague = with_interval(single, 0.05, 0.2);
  EXPECT_EQ(ratio_warnings(training_record("ddp", 2, 4, 0.12), single), "");
  EXPECT_EQ(ratio_warnings(training_record("ddp", 2, 4, 0.12), vague), "single unreliable");
  EXPECT_EQ(ratio_warnings(training_record("ddp", 2, 4, 0.099), single), "x single may be 1");
  EXPECT_EQ(ratio_warnings(training_record("ddp", 2, 4, 0.085), single), "below single");
  EXPECT_EQ(ratio_warnings(with_interval(training_record("ddp", 2, 4, 0.085), 0.03, 0.2), single),
            "uncertain");
  EXPECT_EQ(ratio_warnings(
                with_interval(training_record("ddp", 2, 4, 0.09), Measures::kNone, Measures::kNone), single),
            "x single may be 1");
}

// Returns the processor time of a report on points of all kinds.
double report_seconds(int64_t num_points) {
  std::vector<Record> records;
  for (int64_t i = 0; i < num_points; ++i) {
    Record record = training_record(i % 2 == 0 ? "ddp" : "fsdp", int64_t{1} << (i / 2 % 8), 1 + i / 16, 0.1);
    record.point.repeat = i % 3;
    if (i % 10 == 0) record.outcome = Outcome::skipped;
    records.push_back(std::move(record));
  }
  const std::vector<StudyData> studies = {study_of(std::move(records))};
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(text_of(make_report(studies)).empty());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Report, GrowsAboutLinearly) {
  const double small = report_seconds(2'500), large = report_seconds(10'000);
  RecordProperty("seconds_10000_points", std::to_string(large));
  EXPECT_LT(large, 8 * small);  // quadratic growth would give a factor of 16
}

// The largest batch is predicted only for models that this program knows. A study may contain other models,
// or other options.
TEST(Report, ForetellsNoBatchOfAnUnknownModel) {
  for (const Choice& model : {Choice{"gpt2", {{"width", 10}, {"heads", 3}}}, Choice{"gpt9", {}}}) {
    Record fits = training_record("ddp", 2, 4, 0.1), fails = training_record("ddp", 2, 8, 0.1);
    fits.measures.memory_limit_bytes = 1e9;
    fails.outcome = Outcome::out_of_memory;
    for (Record* record : {&fits, &fails}) record->point.training.model = model;
    const std::vector<StudyData> studies = {study_of({fits, fails})};
    const auto points = merge_repeats(studies);
    const Table table = largest_table(studies, points);
    ASSERT_EQ(table.rows.size(), 1u) << model.name;
    EXPECT_EQ(cell(table, 0, "predicted").text, "-") << model.name;
  }
}

}  // namespace
}  // namespace shardmark
