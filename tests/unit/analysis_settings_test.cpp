// The table of settings: a winner where its interval is by itself, AMBIGUOUS where it is not; and that no
// other table joins points of different settings.
#include <gmock/gmock.h>

#include "analysis_fixture.h"

namespace shardmark {
namespace {

Record with_settings(const std::string& environment, double step_s) {
  Record record = training_record("ddp", 2, 4, step_s);
  record.point.environment = environment;
  record.id = point_id(record.point);
  return record;
}

std::vector<std::string> column_of(const Table& table, const std::string& name) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].name == name)
      for (const auto& row : table.rows) texts.push_back(row[i].text);
  return texts;
}

Table settings_of(const std::vector<Record>& records) {
  StudyData study{"s.h5", {}, records};
  study.environment.world_ranks = 2;
  const std::vector<StudyData> studies = {study};
  return settings_table(merge_repeats(studies));
}

using Texts = std::vector<std::string>;

TEST(SettingsTable, NamesTheFastestWhereItsIntervalIsByItself) {
  const Table table = settings_of(
      {with_settings("NCCL_ALGO=Ring", 0.2), with_settings("", 0.1), with_settings("NCCL_ALGO=Tree", 0.3)});
  EXPECT_EQ(column_of(table, "environment"), (Texts{"nothing set", "NCCL_ALGO=Ring", "NCCL_ALGO=Tree"}));
  EXPECT_EQ(column_of(table, "verdict"), (Texts{"fastest", "slower", "slower"}));
  EXPECT_EQ(column_of(table, "x fastest"), (Texts{"1.00", "2.00", "3.00"}));
}

TEST(SettingsTable, IsAmbiguousWhereIntervalsOverlap) {
  const Table table = settings_of(
      {with_settings("NCCL_ALGO=Ring", 0.1), with_settings("", 0.101), with_settings("NCCL_ALGO=Tree", 0.3)});
  EXPECT_EQ(column_of(table, "verdict"), (Texts{"AMBIGUOUS", "AMBIGUOUS", "slower"}));
}

TEST(SettingsTable, IsEmptyWithoutTwoSettings) {
  EXPECT_TRUE(settings_of({with_settings("NCCL_ALGO=Ring", 0.1)}).rows.empty());
  EXPECT_TRUE(
      settings_of({training_record("ddp", 2, 4, 0.1), training_record("fsdp", 2, 4, 0.1)}).rows.empty());
}

// They are part of the machine that a point was measured on.
TEST(Settings, AreNeverMerged) {
  StudyData study{
      "s.h5", {}, {with_settings("NCCL_ALGO=Ring threads=2", 0.1), with_settings("threads=4", 0.1)}};
  study.environment.devices = {"cpu"};
  study.environment.threads_per_rank = 0;
  const std::vector<StudyData> studies = {study};
  const auto points = merge_repeats(studies);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_THAT(
      (Texts{points[0].machine, points[1].machine}),
      ::testing::UnorderedElementsAre("cpu, 2 threads per rank, NCCL_ALGO=Ring", "cpu, 4 threads per rank"));
  EXPECT_NE(points[0].family, points[1].family);
  EXPECT_NE(location_of(points[0]), location_of(points[1]));
}

}  // namespace
}  // namespace shardmark
