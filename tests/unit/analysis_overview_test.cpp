// Tests the first screen of a report: which questions it answers, which points it does not rank, and that it
// fits one screen.
#include <gmock/gmock.h>

#include <algorithm>

#include "analysis/overview/overview.h"
#include "analysis/plots/plots.h"
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
  EXPECT_THAT(text, ContainsRegex("\n  ddp +100.0 +fastest \\? +10,240 "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp +101.0 +\\+1 % \\? +[0-9.,]+ "));
  EXPECT_THAT(text, ContainsRegex("\n  zero3 +150.0 +\\+50 % \\? +[0-9.,]+ "));
  EXPECT_THAT(text, ContainsRegex("\n  single +50.00 +- "));  // its ranks do not train together
}

// A point with a wide confidence interval is not ranked.
TEST(Overview, RanksNoDoubtfulPoint) {
  const std::string text =
      first_screen({with_half_width("ddp", 0.1, 0.04), with_half_width("fsdp", 0.105, 0.09),
                    with_half_width("zero3", 0.4, 0.8), with_half_width("fsdp(shard=optimizer)", 0.02, 0.9)});
  EXPECT_THAT(text, ContainsRegex("\n  ddp +100.0 +fastest \\? "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp +105.0 +\\+5 % \\? "));
  EXPECT_THAT(text, ContainsRegex("\n  zero3 +400.0 +unreliable "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp\\(shard=optimizer\\) +20.00 +unreliable "));
  EXPECT_THAT(text, ContainsRegex("\nuncertain: 2 points, such as "));
}

// On 2 ranks, a batch of 4 per rank is also a global batch of 8. The point is measured once and shown in one
// row, with the efficiency of both scalings.
TEST(Overview, APointOfTwoScalingsIsOneRow) {
  std::vector<Record> records;
  for (const char* strategy : {"ddp", "fsdp"}) {
    records.push_back(training_record(strategy, 1, 4, 0.08));
    records.push_back(training_record(strategy, 2, 4, 0.1));
    records.push_back(training_record(strategy, 1, 8, 0.22));
    records.back().point.training.scaling = "strong";
  }
  const std::vector<StudyData> studies = {study_of(records)};
  const auto points = merge_repeats(studies);
  const OverviewTable table = training_overview(points, scaling_series(points));
  ASSERT_EQ(table.groups.size(), 1u);
  EXPECT_EQ(table.groups[0].setting, "gpt2, batch 4 per rank, 2 ranks");
  ASSERT_EQ(table.groups[0].rows.size(), 2u);
  for (const auto& row : table.groups[0].rows)
    for (size_t c = 0; c < row.size(); ++c) {
      if (table.columns[c].name == "weak eff.") {
        EXPECT_EQ(row[c].text, "80.0");  // 0.08 / 0.1
      } else if (table.columns[c].name == "strong eff.") {
        EXPECT_EQ(row[c].text, "110.0");  // 0.22 / (2 x 0.1)
      }
    }
  const Plots plots = make_plots(studies);
  const auto is_speed = [](const Plot& plot) { return plot.title == "Speed against memory"; };
  EXPECT_EQ(std::count_if(plots.begin(), plots.end(), is_speed), 1);
  const auto strong = std::find_if(plots.begin(), plots.end(), [](const Plot& plot) {
    return plot.title == "Memory of a rank, measured and predicted" && plot.about == "gpt2, global batch 8";
  });
  ASSERT_NE(strong, plots.end());  // it includes the points that were measured for weak scaling
  EXPECT_EQ(strong->rows.size(), 4u);
}

TEST(Overview, LeavesOversubscribedRanksOut) {
  std::vector<Record> records;
  for (int64_t ranks : {1, 2, 4, 8}) {
    records.push_back(training_record("ddp", ranks, 4, ranks == 8 ? 0.9 : 0.1 * static_cast<double>(ranks)));
    records.back().measures.oversubscribed = ranks == 8;
  }
  const std::string text = first_screen(records);
  EXPECT_THAT(text, HasSubstr("gpt2, batch 4 per rank, 4 ranks\n"));
  // The efficiency is a quarter: 4 ranks are as fast as one.
  EXPECT_THAT(text, ContainsRegex("\n  ddp .* 25\\.0\n"));
  EXPECT_THAT(text, HasSubstr("oversubscribed: 1 point had more ranks than cores"));
}

TEST(Overview, SaysBandwidthOfTheLargestAndTimeOfTheSmallestMessage) {
  Record large = collective_record("all_reduce", 4, 1 << 20, true, 1e-3),
         small = collective_record("all_reduce", 4, 1024, true, 1e-5);
  const std::string text = first_screen({large, small});
  EXPECT_THAT(text, HasSubstr("4 ranks over mpi, float32\n"));
  EXPECT_THAT(text, ContainsRegex("\n  all_reduce +[0-9.]+ +1.00 MiB +10.0 +1.00 KiB +yes\n"));
  EXPECT_THAT(text, Not(HasSubstr("?")));
  // An unreliable value is still shown, with a mark.
  for (Record* doubtful : {&small, &large}) {
    const Measures before = doubtful->measures;
    doubtful->measures.step_low_s = 0.1 * before.step_s;
    doubtful->measures.step_high_s = 10 * before.step_s;
    EXPECT_THAT(first_screen({large, small, collective_record("all_reduce", 4, 16384, true, 3e-5)}),
                ContainsRegex(doubtful == &small
                                  ? "\n  all_reduce +[0-9.]+ +1.00 MiB +10.0 \\? +1.00 KiB +yes\n\\?: "
                                  : "\n  all_reduce +[0-9.]+ \\? +1.00 MiB +10.0 +1.00 KiB +yes\n\\?: "));
    doubtful->measures = before;
  }
}

// As many sizes were measured in place as out of place, but not the largest size.
TEST(Overview, SaysTheLargestMessageOfBothPlaces) {
  const std::vector<Record> records = {collective_record("all_reduce", 4, 1024, true, 1e-5),
                                       collective_record("all_reduce", 4, 4096, true, 2e-5),
                                       collective_record("all_reduce", 4, 2048, false, 3e-5),
                                       collective_record("all_reduce", 4, 1 << 20, false, 1e-3)};
  EXPECT_THAT(first_screen(records), ContainsRegex("\n  all_reduce +[0-9.]+ +1.00 MiB +10.0 +1.00 KiB"));
}

// "verified" also depends on sizes that failed, that were not checked, and that have a warning.
TEST(Overview, VerifiedIsWhatHoldsForEverySize) {
  const auto verified = [](int64_t large_wrong, int64_t small_wrong, Outcome small_outcome = Outcome::ok) {
    Record large = collective_record("all_reduce", 4, 1 << 20, true, 1e-3),
           small = collective_record("all_reduce", 4, 1024, true, 1e-5), slow = small;
    large.measures.num_wrong = large_wrong;
    small.measures.num_wrong = small_wrong;
    small.measures.step_low_s = 1e-6;  // makes the point unreliable
    small.measures.step_high_s = 1e-4;
    small.outcome = small_outcome;
    slow.point.collective.in_place = false;
    slow.measures.step_s = 2e-5;
    const std::string text = first_screen({large, small, slow});
    const size_t row = text.find("\n  all_reduce "), end = text.find('\n', row + 1);
    const std::string line = text.substr(row, end - row);
    return line.substr(line.rfind("KiB") == std::string::npos ? line.rfind("MiB") : line.rfind("KiB"));
  };
  EXPECT_THAT(verified(0, 0), ContainsRegex("^.iB +yes$"));
  EXPECT_THAT(verified(0, -1), ContainsRegex("^.iB +not checked at 1 of 2 sizes$"));
  EXPECT_THAT(verified(0, 2), ContainsRegex("^.iB +wrong at 1 of 2 sizes$"));
  EXPECT_THAT(verified(0, 2, Outcome::wrong), ContainsRegex("^.iB +wrong at 1 of 2 sizes$"));
  EXPECT_THAT(verified(-1, 2), ContainsRegex("^.iB +wrong at 1, not checked at 1 of 2 sizes$"));
}

// The first screen and the tables show the same numbers, even if repeats differ.
TEST(Overview, SaysTheNumbersOfTheTables) {
  std::vector<Record> records;
  for (const auto& [step_s, peak] : {std::pair(0.10, 1.0e12), {0.13, 0.8e12}, {0.11, 0.95e12}}) {
    Record record = training_record("ddp", 2, 4, step_s, 0.01 * step_s);
    record.point.repeat = std::ssize(records);
    record.id = point_id(record.point);
    record.measures.peak_flops = peak;
    record.measures.datasheet_flops = 1.5e12;
    records.push_back(record);
  }
  const std::vector<StudyData> studies = {study_of(records)};  // the merged points refer to these records
  const auto points = merge_repeats(studies);
  const OverviewTable screen = training_overview(points, {});
  const Table table = strategies_table(points);
  for (const auto& [here, there] : {std::pair("samples/s", "samples/s"),
                                    {"tokens/s", "tokens/s"},
                                    {"tokens/s/rank", "tokens/s/rank"},
                                    {"step", "step time median"},
                                    {"peak memory", "peak memory"},
                                    {"exposed", "exposed of step"},
                                    {"MFU", "MFU"}})
    for (size_t c = 0; c < screen.columns.size(); ++c)
      if (screen.columns[c].name == here) {
        EXPECT_EQ(screen.groups.at(0).rows.at(0).at(c).text, cell(table, 0, there).text) << here;
      }
  const Table costs = costs_table(points, 1);
  for (const char* speed : {"samples/s", "tokens/s", "tokens/s/rank", "MFU", "of matmul"})
    EXPECT_EQ(cell(costs, 0, speed).value, cell(table, 0, speed).value) << speed;
}

TEST(Overview, SaysWhatAnUnfinishedStudyLacks) {
  StudyData study = study_of({training_record("ddp", 2, 4, 0.1)});
  study.environment.command_line = "shardmark run suites/small.yaml -o results/small.h5";
  const auto about = [&] { return overview_of({study}, merge_repeats({study}), {}, {}).studies.at(0); };
  EXPECT_THAT(about(), Not(HasSubstr("Unfinished")));
  study.num_to_go = 19;
  EXPECT_THAT(about(), HasSubstr("Unfinished: 19 points to go; "));
  EXPECT_THAT(about(), HasSubstr("shardmark run suites/small.yaml -o results/small.h5 --resume"));
  EXPECT_EQ(cell(studies_table({study}), 0, "to go").value, 19);
}

TEST(Overview, DefinesItsColumnsWhereAsked) {
  const std::vector<StudyData> studies = {
      study_of({training_record("ddp", 2, 4, 0.1), collective_record("all_reduce", 4, 1024, true, 1e-5)})};
  const auto points = merge_repeats(studies);
  const Overview overview = overview_of(studies, points, {}, scaling_series(points));
  const std::string text = to_text(overview, {}, Explanations::shown);
  EXPECT_THAT(text, HasSubstr("\n* tokens/s: of all ranks together"));
  EXPECT_THAT(text, HasSubstr("\n* busbw: bus bandwidth of the largest message"));
  EXPECT_THAT(to_text(overview, {}), Not(HasSubstr("* tokens/s:")));
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
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 55);  // without the list of tables
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
