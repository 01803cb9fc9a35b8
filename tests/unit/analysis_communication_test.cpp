// Communication of a step in the report: by phase, and what the wire carries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/known.h"
#include "analysis/tables.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

Record with_program(const std::string& strategy, int64_t ranks) {
  Record record = training_record(strategy, ranks, 4, 0.1);
  record.samples.push_back(laws::to_series(*known_program(record.point)));
  return record;
}

Table communication(const Record& record) {
  const std::vector<StudyData> studies = {study_of({record})};
  return communication_table(merge_repeats(studies));
}

TEST(Communication, IsShownByPhase) {
  const Table table = communication(with_program("fsdp", 2));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, 0, "formula").text, "agrees");
  double moved = 0;
  for (const char* phase : {"forward", "backward", "update"})
    moved += cell(table, 0, std::string(phase) + " moved").value.get<double>();
  EXPECT_NEAR(moved * 1e6, with_program("fsdp", 2).measures.law_traffic_bytes, 1);
  EXPECT_EQ(cell(table, 0, "update operations").value, 0);
}

TEST(Communication, SaysWhereTheFormulaDiffers) {
  Record record = with_program("ddp", 2);
  record.point.training.strategy = resolved_strategy("fsdp");  // recorded by a ddp that calls itself fsdp
  EXPECT_THAT(cell(communication(record), 0, "formula").text, HasSubstr("forward 6 of "));
  record.point.training.strategy = {"future_strategy"};
  EXPECT_TRUE(cell(communication(record), 0, "formula").value.is_null());
  EXPECT_TRUE(communication(training_record("ddp", 2, 4, 0.1)).rows.empty());
  record.samples.back().values[0] = 99;  // no phase
  EXPECT_TRUE(communication(record).rows.empty());
}

// A reduce moves (n+1)/n of what a ring would: the counted bytes of zero3 agree with its formula all the
// same.
TEST(Traffic, ShowsWhatTheWireCarries) {
  const std::vector<StudyData> studies = {
      study_of({training_record("zero3", 2, 4, 0.1), training_record("ddp", 2, 4, 0.1)})};
  const Table table = traffic_table(merge_repeats(studies));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_TRUE(cell(table, 0, "moved wire").value.is_null());  // ddp: as counted
  const double counted = cell(table, 1, "moved counted").value.get<double>();
  EXPECT_EQ(cell(table, 1, "moved off by").text, "0");
  EXPECT_NEAR(cell(table, 1, "moved wire").value.get<double>() / counted, 1 + 0.5 / 3, 0.02);
  StudyData other = study_of({training_record("zero3", 2, 4, 0.1)});
  other.environment.transport = "nccl";
  const std::vector<StudyData> over_nccl = {other};
  EXPECT_TRUE(cell(traffic_table(merge_repeats(over_nccl)), 0, "moved wire").value.is_null());
}

}  // namespace
}  // namespace shardmark
