// Exported studies contain every column and every sample. The tests parse them with independent readers.
#include <gmock/gmock.h>

#include "analysis/export.h"
#include "schema/json.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

StudyData filled_study() {
  Record missing;
  missing.id = "missing";
  missing.samples = {{"step", 1, 3, {0.5, Measures::kNone, HUGE_VAL}}};
  return {"x.h5", sample_environment(), {filled_record(4), missing}};
}

TEST(Export, JsonHoldsEveryColumnAndSample) {
  const StudyData study = filled_study();
  std::stringstream out;
  write_json(out, study);
  const auto json = nlohmann::ordered_json::parse(out.str());
  for (const auto& [i, expected] : {std::pair{0, study.records[0]}, {1, study.records[1]}}) {
    Record columns = expected;
    columns.samples.clear();
    expect_same(columns, record_from_json(json["points"][i]));
    for (const Series& series : expected.samples) {
      const auto& rows = json["points"][i]["samples"][series.name];
      ASSERT_EQ(rows.size(), static_cast<size_t>(series.rows)) << series.name;
      for (int64_t row = 0; row < series.rows; ++row)
        for (int64_t column = 0; column < series.columns; ++column)
          ASSERT_EQ(rows[row][column], json_of(series.at(row, column)));
    }
  }
  EXPECT_EQ(json["points"][1]["step"], nullptr);
  const auto& steps = json["points"][1]["samples"]["step"][0];  // the samples are {0.5, NaN, infinity}
  EXPECT_EQ(steps[1], nullptr);
  EXPECT_EQ(steps[2], "inf");
  EXPECT_EQ(json["fields"]["step"]["unit"], "s");
  EXPECT_EQ(json["environment"]["versions"]["torch"], "2.11.0");
}

TEST(Export, CsvNamesColumnsAsTheFileDoes) {
  const StudyData study = filled_study();
  const std::string points = to_csv(points_export(study));
  EXPECT_TRUE(points.starts_with("id,outcome,reason,started,duration,attempts,ended_job,workload,ranks,"));
  EXPECT_EQ(std::count(points.begin(), points.end(), '\r'),
            3);  // the three line ends are the only carriage returns
  EXPECT_THAT(to_csv(fields_export()),
              HasSubstr("points,step,s,\"median over the steps, of the slowest rank's time\"\r\n"));
  EXPECT_THAT(to_csv(environment_export(study)), HasSubstr("nodes,\"[\"\"n1\"\",\"\"n2\"\"]\"\r\n"));
}

TEST(Export, CsvHasALineForEachSample) {
  const StudyData study = filled_study();
  std::stringstream out;
  write_samples_csv(out, study);
  const std::string text = out.str();
  size_t num_samples = 0;
  for (const Record& record : study.records)
    for (const Series& series : record.samples) num_samples += series.values.size();
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), num_samples + 1);
  EXPECT_THAT(text, HasSubstr("record-4,step,1,2,4.005\r\n"));
  EXPECT_THAT(text, HasSubstr("missing,step,0,0,0.5\r\nmissing,step,0,1,\r\nmissing,step,0,2,inf\r\n"));
}

}  // namespace
}  // namespace shardmark
