// Reports about studies without usable measurements: a report says so and makes up no numbers.
#include <gmock/gmock.h>

#include "analysis/overview/overview.h"
#include "analysis/report.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

// Returns all tables of the report as text, and checks that each can also be written as Markdown, CSV and
// JSON.
std::string report_text(const std::vector<StudyData>& studies) {
  std::string text;
  for (const Table& table : make_report(studies)) {
    text += to_text(table);
    EXPECT_FALSE(to_markdown(table).empty() || to_csv(table).empty());
    const auto json = to_json(table);
    for (const auto& row : json["rows"])
      for (const auto& [column, value] : row.items()) {
        EXPECT_TRUE(!value.is_number_float() || std::isfinite(value.get<double>())) << table.key << column;
      }
  }
  return text;
}

// Returns the first screen of the report as text.
std::string first_screen(const std::vector<StudyData>& studies) {
  const ReportData data(studies);
  return to_text(overview_of(studies, data.points, data.unfinished, data.scaling), {});
}

// Returns points of all kinds. All of them have the same step time.
std::vector<Record> records_with(double step_s) {
  std::vector<Record> records;
  for (const int64_t ranks : {1, 2, 4, 8}) {
    records.push_back(training_record("ddp", ranks, 8 / ranks, step_s, step_s / 10));
    records.push_back(training_record("zero3", ranks, 4, step_s));
  }
  records.push_back(training_record("single", 2, 4, step_s));
  records.push_back(collective_record("all_reduce", 2, 1 << 20, true, step_s));
  return records;
}

TEST(BadInput, AnEmptyStudyIsSaidToBeEmpty) {
  const std::string text = report_text({study_of({})});
  EXPECT_THAT(text, HasSubstr("no point had finished"));
}

TEST(BadInput, AllPointsFailed) {
  std::vector<Record> records = records_with(0.1);
  for (Record& record : records) {
    record.outcome = Outcome::failed;
    record.reason = "rank 3 died";
    record.measures = {};
  }
  const std::string text = report_text({study_of(records)});
  EXPECT_THAT(text, HasSubstr("rank 3 died"));
  EXPECT_THAT(text, HasSubstr("no point has a result"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("Strategies")));
}

TEST(BadInput, TimesThatAreNoneGiveNoNumbers) {
  for (const double bad : {0.0, Measures::kNone, HUGE_VAL, -1.0, 1e-320}) {
    const std::string text = report_text({study_of(records_with(bad))});
    for (const char* nonsense : {"inf", "nan"})
      EXPECT_THAT(text, ::testing::Not(::testing::ContainsRegex(std::string("[ -]") + nonsense + "[ \n]")))
          << bad;
  }
}

TEST(BadInput, OneRankCountGivesNoScaling) {
  std::vector<Record> records = {training_record("ddp", 2, 4, 0.1), training_record("zero3", 2, 4, 0.1)};
  EXPECT_THAT(report_text({study_of(records)}), ::testing::Not(HasSubstr("Karp-Flatt")));
}

TEST(BadInput, PointsOfAnUnknownKindAreLeftOutAndNamed) {
  std::vector<Record> records = records_with(0.1);
  records.front().point.workload = "inference";
  EXPECT_THAT(report_text({study_of(records)}), HasSubstr("1 point is of a kind unknown to this version"));
  for (Record& record : records) {
    record.point.workload = "";
    record.outcome = Outcome::failed;
  }
  EXPECT_THAT(report_text({study_of(records)}), HasSubstr("failed"));
  EXPECT_THAT(first_screen({study_of(records)}), HasSubstr("such as a point of the unknown kind ''"));
}

TEST(BadInput, ValuesOfOtherProgramsDoNoHarm) {
  std::vector<Record> records = records_with(0.1);
  for (Record& record : records) {
    record.point.ranks = 0;
    record.point.training.batch_size = -3;
    record.point.training.model = {"nonsense", {{"a", 1}}};
    record.point.training.strategy = {"ddp", {{"bucket_mb", "x"}}};
    record.point.collective.dtype = "float7";
    record.point.collective.bytes = -1;
  }
  EXPECT_THAT(report_text({study_of(records)}), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace shardmark
