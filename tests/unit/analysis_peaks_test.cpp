// Tests the two utilizations of a device: MFU relative to its data sheet, and the share of the speed of a
// matrix product.
#include <gmock/gmock.h>

#include <algorithm>

#include "analysis/openmetrics.h"
#include "analysis/overview/overview.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string warning_of(const MergedPoint& merged, const std::string& kind) {
  for (const Warning& warning : merged.warnings)
    if (warning.kind == kind && !warning.excludes) return warning.words;
  return "";
}
bool has_warning(const MergedPoint& merged, const std::string& kind) {
  return !warning_of(merged, kind).empty();
}

double causal_share() { return specs::model_table(small_gpt2())->causal_share(); }

Record with_peaks(Record record, double matmul, double datasheet = Measures::kNone) {
  record.measures.peak_flops = matmul;
  record.measures.datasheet_flops = datasheet;
  return record;
}

// Returns the cell of the first point, with its % sign, or "-" if it is empty.
std::string shown(const std::vector<StudyData>& studies, const std::string& column) {
  return cell(strategies_table(merge_repeats(studies)), 0, column).text;
}

TEST(Peaks, TheBestOneOfAStudyCountsForAllOfIt) {
  std::vector<Record> records = {
      with_peaks(training_record("ddp", 1, 4, 0.1), 1e12),
      with_peaks(training_record("ddp", 2, 4, 0.1), 0.95e12),
      with_peaks(training_record("zero3", 2, 4, 0.1), 0.5e12)};  // other processes disturbed this measurement
  records.push_back(with_peaks(records[0], 8e12));
  records[3].point.training.precision = "bf16";
  records[3].id = point_id(records[3].point);
  for (const MergedPoint& merged : merge_repeats({study_of(records)})) {
    const Measures& m = merged.measures;
    const bool is_bf16 = merged.point.training.precision == "bf16";
    EXPECT_DOUBLE_EQ(m.peak_flops, is_bf16 ? 8e12 : 1e12);
    EXPECT_EQ(has_warning(merged, "low peak"), merged.point.training.strategy.name == "zero3");
    EXPECT_DOUBLE_EQ(merged.of_matmul, causal_share() * m.flops_per_step / m.step_s / m.peak_flops);
    EXPECT_TRUE(std::isnan(m.mfu)) << "of a device without a data sheet";
  }
}

// A device has a peak of fp8 products if it multiplies so itself; products beside fp32 are always emulated.
TEST(Peaks, EmulatedProductsAreMarked) {
  const auto is_marked = [](double matmul, const char* precision, const char* products, const char* model) {
    Record record = with_peaks(training_record("ddp", 1, 4, 0.1), matmul);
    record.point.training.precision = precision;
    record.point.training.products = choice_from_text(products);
    if (model != nullptr) record.point.training.model = choice_from_text(model);
    record.id = point_id(record.point);
    const std::vector<StudyData> studies = {study_of({record})};
    return has_warning(merge_repeats(studies).at(0), "emulated");
  };
  EXPECT_FALSE(is_marked(1e15, "bf16", "fp8", nullptr));
  EXPECT_TRUE(is_marked(Measures::kNone, "bf16", "fp8", nullptr));
  EXPECT_TRUE(is_marked(1e12, "fp32", "fp8", nullptr));
  EXPECT_TRUE(is_marked(Measures::kNone, "bf16", "fp8(scaling=block)", nullptr));
  EXPECT_FALSE(is_marked(1e15, "bf16", "fp8(scaling=block)", nullptr));
  EXPECT_FALSE(is_marked(1e15, "bf16", "fp8(scaling=row)", nullptr));
  EXPECT_FALSE(is_marked(1e15, "bf16", "fp8", "moe(experts=8)"));
  EXPECT_TRUE(is_marked(Measures::kNone, "bf16", "fp8", "moe(experts=8)"));
  EXPECT_FALSE(is_marked(Measures::kNone, "bf16", "compute", nullptr));
}

TEST(Peaks, OtherStudiesOfTheReportChangeNothing) {
  const auto study = [](const char* strategy, double peak) {
    return study_of({with_peaks(training_record(strategy, 2, 4, 0.1), peak, 2e12)});
  };
  const std::vector<StudyData> one = {study("ddp", 1e12)}, more = {study("ddp", 1e12), study("fsdp", 1.6e12)};
  for (const char* column : {"MFU", "of matmul"}) EXPECT_EQ(shown(one, column), shown(more, column));
  EXPECT_EQ(shown(one, "MFU"), "40.0");  // 8e10 FLOP in 0.1 s, of a peak of 2e12 FLOP/s
  const auto points = merge_repeats(more);
  EXPECT_TRUE(has_warning(points.at(0), "low peak"));  // the lower peak shows that the machine was busy
}

// With causal attention, half of the FLOPs of attention are not needed. A device that computes only the other
// half, as fast as a matrix product, reaches 100 % of matmul. MFU counts all FLOPs.
TEST(Peaks, AttentionCountsByHalfBesideAMatrixProduct) {
  const Choice model =
      resolve(choice_from_text("gpt2(layers=4, width=256, heads=4, sequence=8192, vocabulary=256)"),
              specs::model_spec("gpt2").options, "model");
  const auto table = specs::model_table(model);
  const double share = table->attention_share();
  EXPECT_GT(share, 0.8);
  EXPECT_DOUBLE_EQ(table->causal_share(), 1 - share / 2);
  Record record = training_record("ddp", 2, 4, 0.1);
  record.point.training.model = model;
  record.id = point_id(record.point);
  record.measures.flops_per_step = 1.2e11;  // 1.2 times as many as the matrix product computes in that time
  const std::vector<StudyData> studies = {study_of({with_peaks(record, 1e12)})};
  const auto points = merge_repeats(studies);
  EXPECT_FALSE(has_warning(points.at(0), "above matmul"));
  EXPECT_NEAR(points.at(0).of_matmul, 1.2 * (1 - share / 2), 1e-12);
}

TEST(Peaks, WhatIsAboveAllOfItIsNotShownButMarked) {
  const std::vector<StudyData> fast = {study_of({with_peaks(training_record("ddp", 2, 4, 0.1), 5e11, 7e11)})};
  for (const char* column : {"MFU", "of matmul"}) EXPECT_EQ(shown(fast, column), "-") << column;
  EXPECT_EQ(shown(fast, "warnings"), "above data sheet, above matmul");
  EXPECT_THAT(point_metrics(fast), Not(HasSubstr("_ratio")));
  const auto points = merge_repeats(fast);
  EXPECT_THAT(warning_of(points.at(0), "above data sheet"), HasSubstr("114 % of the data sheet's peak"));

  const std::vector<StudyData> slow = {study_of({with_peaks(training_record("ddp", 2, 4, 0.1), 1e12, 2e12)})};
  EXPECT_EQ(shown(slow, "warnings"), "");
  EXPECT_THAT(point_metrics(slow), HasSubstr("shardmark_mfu_ratio"));
  EXPECT_THAT(point_metrics(slow), HasSubstr("shardmark_matmul_ratio"));
}

// A point above the peak is marked even if it already has another mark.
TEST(Peaks, MarksEveryPointAboveAllOfIt) {
  Record vague = with_peaks(training_record("ddp", 2, 4, 0.1), 5e11);
  vague.measures.step_low_s = 0.05;
  vague.measures.step_high_s = 0.2;
  EXPECT_EQ(shown({study_of({vague})}, "warnings"), "uncertain, above matmul");
}

TEST(Peaks, SayNothingOfModelsThatNobodyKnows) {
  Record record = with_peaks(training_record("ddp", 2, 4, 0.1), 1e12, 2e12);
  record.point.training.model = {"future_model", {}};
  const std::vector<StudyData> studies = {study_of({record})};
  EXPECT_EQ(shown(studies, "MFU"), "40.0");  // the study contains its FLOPs
  EXPECT_EQ(shown(studies, "of matmul"), "-");
}

TEST(Peaks, OfATrainingRunAreThoseOfAPoint) {
  Record run = with_peaks(training_record("ddp", 2, 4, 0.1), 1e12, 2e12);
  const std::vector<StudyData> points = {study_of({run})};
  run.point.workload = "train";
  run.measures.mfu = mfu_of(run.measures);  // as a run stores it
  const Table runs = runs_table({study_of({run})});
  for (const char* column : {"MFU", "of matmul"})
    EXPECT_EQ(cell(runs, 0, column).text, shown(points, column)) << column;
}

TEST(Peaks, TheFirstScreenShowsTheShareOfAMatrixProductWhereThereIsNoMfu) {
  const auto has_column = [](double datasheet) {
    const std::vector<StudyData> studies = {
        study_of({with_peaks(training_record("ddp", 2, 4, 0.1), 1e12, datasheet)})};
    const OverviewTable table = training_overview(merge_repeats(studies));
    return std::any_of(table.columns.begin(), table.columns.end(),
                       [](const Column& column) { return column.name == "of matmul"; });
  };
  EXPECT_TRUE(has_column(Measures::kNone));
  EXPECT_FALSE(has_column(2e12));
}

}  // namespace
}  // namespace shardmark
