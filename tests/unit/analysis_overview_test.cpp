// The first screen: what it answers, what it does not rank, and that it is one screen.
#include <gmock/gmock.h>

#include <algorithm>

#include "analysis/overview/overview.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string first_screen(const std::vector<Record>& records, const TextStyle& style = {}) {
  const std::vector<StudyData> studies = {study_of(records)};
  const auto points = merge_repeats(studies);
  return to_text(overview_of(studies, points, {}, scaling_series(points)), style);
}

Record with_half_width(const std::string& strategy, double step_s, double half) {
  Record record = training_record(strategy, 2, 4, step_s);
  record.measures.step_low_s = step_s * (1 - half);
  record.measures.step_high_s = step_s * (1 + half);
  return record;
}

TEST(Overview, SaysWhatIsFastestAndByHowMuch) {
  const std::string text =
      first_screen({training_record("zero3", 2, 4, 0.150), training_record("fsdp", 2, 4, 0.101),
                    training_record("ddp", 2, 4, 0.100), training_record("single", 2, 4, 0.05)});
  EXPECT_THAT(text, HasSubstr("4 points: 4 ok, on "));
  EXPECT_THAT(text, HasSubstr("\ngpt2, batch 4 per rank, 2 ranks\n"));
  EXPECT_THAT(text, ContainsRegex("\n  ddp +80.00 +100.0 +fastest "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp +[0-9.]+ +101.0 +equal "));
  EXPECT_THAT(text, ContainsRegex("\n  zero3 +[0-9.]+ +150.0 +\\+50 % "));
  EXPECT_THAT(text, ContainsRegex("\n  single +[0-9.]+ +50.00 +- "));  // its ranks do not work together
}

// Intervals that overlap widely are no equality, and a point with such an interval is not ranked.
TEST(Overview, RanksNoDoubtfulPoint) {
  const std::string text =
      first_screen({with_half_width("ddp", 0.1, 0.04), with_half_width("fsdp", 0.105, 0.09),
                    with_half_width("zero3", 0.4, 0.8), with_half_width("fsdp(shard=optimizer)", 0.02, 0.9)});
  EXPECT_THAT(text, ContainsRegex("\n  ddp +[0-9.]+ +100.0 +fastest "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp +[0-9.]+ +105.0 +\\+5 % \\? "));
  EXPECT_THAT(text, ContainsRegex("\n  zero3 +[0-9.]+ +400.0 +unreliable "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp\\(shard=optimizer\\) +[0-9.]+ +20.00 +unreliable "));
  EXPECT_THAT(text, ContainsRegex("\nuncertain: 2 points, such as "));
}

TEST(Overview, LeavesOversubscribedRanksOut) {
  std::vector<Record> records;
  for (int64_t ranks : {1, 2, 4, 8}) {
    records.push_back(training_record("ddp", ranks, 4, ranks == 8 ? 0.9 : 0.1 * static_cast<double>(ranks)));
    records.back().measures.oversubscribed = ranks == 8;
  }
  const std::string text = first_screen(records);
  EXPECT_THAT(text, HasSubstr("gpt2, batch 4 per rank, 4 ranks\n"));
  EXPECT_THAT(text, ContainsRegex("\n  ddp .* 25\\.0\n"));  // efficiency: a fourth of one rank's speed
  EXPECT_THAT(text, HasSubstr("oversubscribed: 1 point had more ranks than cores"));
}

TEST(Overview, SaysBandwidthOfTheLargestAndTimeOfTheSmallestMessage) {
  Record large = collective_record("all_reduce", 4, 1 << 20, true, 1e-3),
         small = collective_record("all_reduce", 4, 1024, true, 1e-5);
  const std::string text = first_screen({large, small});
  EXPECT_THAT(text, HasSubstr("4 ranks over mpi, float32\n"));
  EXPECT_THAT(text, ContainsRegex("\n  all_reduce +[0-9.]+ +1.00 MiB +10.0 +1.00 KiB +yes\n"));
  small.measures.step_low_s = 1e-6;  // not to be believed: another size stands for it
  small.measures.step_high_s = 1e-4;
  EXPECT_THAT(first_screen({large, small}),
              ContainsRegex("\n  all_reduce +[0-9.]+ +1.00 MiB +1,000 +1.00 MiB"));
}

TEST(Overview, DefinesItsColumnsWhereAsked) {
  const std::vector<StudyData> studies = {
      study_of({training_record("ddp", 2, 4, 0.1), collective_record("all_reduce", 4, 1024, true, 1e-5)})};
  const auto points = merge_repeats(studies);
  const Overview overview = overview_of(studies, points, {}, scaling_series(points));
  const std::string text = to_text(overview, {}, Explanations::shown);
  EXPECT_THAT(text, HasSubstr("\n* samples/s: of all ranks together"));
  EXPECT_THAT(text, HasSubstr("\n* busbw: bus bandwidth of the largest message"));
  EXPECT_THAT(to_text(overview, {}), Not(HasSubstr("* samples/s:")));
}

TEST(Overview, IsOneScreen) {
  std::vector<Record> records;
  for (int64_t batch = 1; batch <= 64; ++batch)
    for (const char* strategy : {"single", "ddp", "fsdp", "fsdp(shard=gradients)", "zero3"})
      records.push_back(training_record(strategy, 2, batch, 0.1));
  for (const char* operation : {"all_reduce", "all_gather", "broadcast"})
    for (int64_t ranks = 2; ranks <= 64; ++ranks)
      records.push_back(collective_record(operation, ranks, 1024, true, 1e-5));
  const std::string text = first_screen(records);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 55);  // and the list of tables
  EXPECT_THAT(text, HasSubstr(" more settings: --table strategies"));
  size_t longest = 0;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find('\n', begin);
    longest = std::max(longest, std::min(end, text.size()) - begin);
  }
  EXPECT_LE(longest, 100u);
}

TEST(Overview, ColoursNothingThatAStudyBrings) {
  Record record = training_record("ddp", 2, 4, 0.1);
  record.outcome = Outcome::failed;
  record.reason = "\x1b[2Jgone";
  EXPECT_THAT(first_screen({record}, {.width = 100, .color = true}), Not(HasSubstr("\x1b[2J")));
  EXPECT_THAT(first_screen({record}), HasSubstr("failed: 1 point, "));
}

}  // namespace
}  // namespace shardmark
