// The report shows the communication of a training step by phase.
#include <gtest/gtest.h>

#include "analysis/frame/known.h"
#include "analysis/tables/tables.h"
#include "analysis_fixture.h"
#include "strategies/program_series.h"

namespace shardmark {
namespace {

Record with_program(const std::string& strategy, int64_t ranks) {
  Record record = training_record(strategy, ranks, 4, 0.1);
  record.samples.push_back(strategies::to_series(*known_program(record.point)));
  return record;
}

Table communication(const Record& record) {
  const std::vector<StudyData> studies = {study_of({record})};
  return communication_table(merge_repeats(studies));
}

TEST(Communication, IsShownByPhase) {
  const Table table = communication(with_program("fsdp", 2));
  ASSERT_EQ(table.rows.size(), 1u);
  double moved = 0;
  for (const char* phase : {"forward", "backward", "update"})
    moved += cell(table, 0, std::string(phase) + " traffic").value.get<double>();
  EXPECT_NEAR(moved * 1e6, with_program("fsdp", 2).measures.predicted_traffic_bytes, 1);
  EXPECT_EQ(cell(table, 0, "update operations").value, 0);
}

TEST(Communication, OfProgramsThatCannotBeReadIsLeftOut) {
  Record record = with_program("ddp", 2);
  record.samples.back().values[0] = 99;  // 99 is not a valid phase
  for (const Record& unknown : {training_record("ddp", 2, 4, 0.1), record}) {
    const Table table = communication(unknown);
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(cell(table, 0, "backward operations").text, "-");
    EXPECT_GT(cell(table, 0, "traffic counted").value.get<double>(), 0);
  }
}

}  // namespace
}  // namespace shardmark
