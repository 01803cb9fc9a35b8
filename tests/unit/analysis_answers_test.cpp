// The first screen of a suite that was made for one question begins with the answer to that question.
#include <gmock/gmock.h>

#include "analysis/overview/overview.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string screen_of_answers(const std::vector<Record>& records) {
  const std::vector<StudyData> studies = {study_of(records)};
  const auto points = merge_repeats(studies);
  return to_text(overview_of(studies, points, {}, scaling_series(points)), {});
}

Record point_laid_out(const std::string& strategy, int64_t tensor, int64_t pipeline, double step_s) {
  Record record = training_record(strategy, 4, 4 * tensor * pipeline, step_s);
  record.point.training.tensor = tensor;
  record.point.training.pipeline = pipeline;
  record.id = point_id(record.point);
  return record;
}

// All layouts of a global batch are ranked together, even if their results are in different tables and
// groups.
TEST(Answers, RankAllLayoutsOfOneGlobalBatch) {
  const std::string text =
      screen_of_answers({point_laid_out("ddp", 1, 1, 0.12), point_laid_out("fsdp", 1, 1, 0.13),
                         point_laid_out("ddp", 2, 1, 0.11), point_laid_out("ddp", 1, 2, 0.1)});
  EXPECT_THAT(text, HasSubstr("global batch 16, 4 ranks"));
  EXPECT_THAT(text,
              ContainsRegex("\n  pipeline 2 \\(1f1b\\), ddp +100.0 +\\+0 % \\? .*\n  tensor 2, ddp +110.0 "
                            "+\\+10 % \\? .*\n  data, ddp +120.0 .*\n  data, fsdp +130.0 "));
  EXPECT_LT(text.find("Layouts of one global batch"), text.find("Training"));
}

TEST(Answers, SayTheLargestBatchOfEachStrategy) {
  std::vector<Record> records;
  for (const char* strategy : {"ddp", "zero3"})
    for (const int64_t batch : {1, 2, 4, 8}) {
      records.push_back(training_record(strategy, 2, batch, 0.1));
      if (batch == 8 || (batch == 4 && strategy == std::string("ddp")))
        records.back().outcome = Outcome::out_of_memory;
    }
  const std::string text = screen_of_answers(records);
  EXPECT_THAT(text, AllOf(ContainsRegex("\n  ddp +2 +4 "), ContainsRegex("\n  zero3 +4 +8 ")));
  EXPECT_LT(text.find("The largest batch that fits"), text.find("Training"));
}

TEST(Answers, AreNoneWhereNobodyAsked) {
  const std::string text =
      screen_of_answers({training_record("ddp", 2, 4, 0.1), training_record("fsdp", 2, 4, 0.2)});
  for (const char* title : {"Settings", "Two things at once", "Layouts", "The largest batch", "Sustained"})
    EXPECT_THAT(text, Not(HasSubstr(title)));
}

}  // namespace
}  // namespace shardmark
