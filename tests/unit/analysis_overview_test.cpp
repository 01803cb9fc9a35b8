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

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find('\n', begin);
    longest = std::max(longest, std::min(end, text.size()) - begin);
  }
  return longest;
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
  EXPECT_THAT(text, HasSubstr("\nTraining, on the most ranks of each setting\ngpt2("));
  EXPECT_THAT(text, HasSubstr("), batch 4 per rank, 2 ranks, adamw,\nfp32\n"));
  EXPECT_THAT(text, ContainsRegex("\n  ddp +100.0 +\\+0 % \\? +10,240 "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp +101.0 +\\+1 % \\? +[0-9.,]+ "));
  EXPECT_THAT(text, ContainsRegex("\n  zero3 +150.0 +\\+50 % \\? +[0-9.,]+ "));
  // Its ranks do not work together: it stands on top, for what the others lose by communication.
  EXPECT_THAT(text, ContainsRegex("ms[^\n]+\n  single, no communication +50.00 +-50 % +[0-9.,]+ "));
}

// A point with a wide confidence interval is not ranked.
TEST(Overview, RanksNoDoubtfulPoint) {
  const std::string text =
      first_screen({with_half_width("ddp", 0.1, 0.04), with_half_width("fsdp", 0.105, 0.09),
                    with_half_width("zero3", 0.4, 0.8), with_half_width("fsdp(shard=optimizer)", 0.02, 0.9)});
  EXPECT_THAT(text, ContainsRegex("\n  ddp +100.0 +\\+0 % \\? "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp +105.0 +\\+5 % \\? "));
  EXPECT_THAT(text, ContainsRegex("\n  zero3 +400.0 +\\(\\+300 %\\) "));
  EXPECT_THAT(text, ContainsRegex("\n  fsdp\\(shard=optimizer\\) +20.00 +\\(-80 %\\) "));
  EXPECT_THAT(text, HasSubstr("\nIn parentheses: the times of this row have a warning"));
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
  const OverviewTable table = training_overview(points);
  ASSERT_EQ(table.groups.size(), 1u);
  EXPECT_EQ(table.groups[0].setting, "");
  EXPECT_THAT(table.shared, HasSubstr("), batch 4 per rank, 2 ranks, "));
  ASSERT_EQ(table.groups[0].rows.size(), 2u);
  const OverviewTable scaling = scaling_overview(points, scaling_series(points));
  EXPECT_EQ(scaling.title, "Scaling: efficiency, 1 rank = 100 %");
  ASSERT_EQ(scaling.groups.size(), 2u);
  ASSERT_EQ(scaling.columns.size(), 2u);  // the base says nothing
  EXPECT_EQ(scaling.columns[1].name, "2 ranks");
  for (const auto& [group, setting, efficiency] :
       {std::tuple(0, "batch 4 per rank", "80"),    // 0.08 / 0.1
        std::tuple(1, "global batch 8", "110")}) {  // 0.22 / (2 x 0.1)
    EXPECT_EQ(scaling.groups[group].setting, setting);
    ASSERT_EQ(scaling.groups[group].rows.size(), 2u);
    for (const auto& row : scaling.groups[group].rows) EXPECT_EQ(row[1].text, efficiency);
  }
  const Plots plots = make_plots(studies);
  const auto is_speed = [](const Plot& plot) { return plot.title == "Speed against memory"; };
  EXPECT_EQ(std::count_if(plots.begin(), plots.end(), is_speed), 1);
  const auto strong = std::find_if(plots.begin(), plots.end(), [](const Plot& plot) {
    return plot.title.starts_with("Memory of a rank") &&
           plot.about.find("global batch 8") != std::string::npos;
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
  EXPECT_THAT(text, HasSubstr("batch 4 per rank, 4 ranks, "));
  EXPECT_THAT(text, ContainsRegex("\n  ddp +50 +25 +11 \\?\n"));  // efficiency
  EXPECT_THAT(text, HasSubstr("oversubscribed: 1 point had more ranks than cores"));
}

TEST(Overview, SaysBandwidthOfTheLargestAndTimeOfTheSmallestMessage) {
  Record large = collective_record("all_reduce", 4, 1 << 20, true, 1e-3),
         small = collective_record("all_reduce", 4, 1024, true, 1e-5);
  const std::string text = first_screen({large, small});
  EXPECT_THAT(text, HasSubstr("4 ranks, float32, over mpi\n"));
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
  const OverviewTable screen = training_overview(points);
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
  EXPECT_LE(longest_line(text), 100u);
}

// A record of a model of another width, or with more than one option that is not at its default.
Record of_width(int64_t width, const std::string& strategy, double step_s) {
  Record record = training_record(strategy, 2, 4, step_s);
  record.point.training.model.options["width"] = width;
  record.id = point_id(record.point);
  return record;
}

// Two sizes of a model stand in one table: their headings say the sizes, and all else is said once.
TEST(Overview, HeadingsSayWhatDiffers) {
  const std::vector<StudyData> studies = {
      study_of({of_width(64, "ddp", 0.1), of_width(64, "fsdp", 0.11), of_width(128, "ddp", 0.2)})};
  const OverviewTable table = training_overview(merge_repeats(studies));
  ASSERT_EQ(table.groups.size(), 2u);
  EXPECT_EQ(table.groups[0].setting, "width=64");
  EXPECT_EQ(table.groups[1].setting, "width=128");
  EXPECT_EQ(table.shared,
            "gpt2(layers=4, heads=4, sequence=128, vocabulary=8192), batch 4 per rank, 2 ranks, "
            "adamw, fp32");
}

// Options that all rows of a group share are in its heading, and no name is cut off.
TEST(Overview, RowsSayWhatDiffers) {
  const std::string shared = "bucket_mb=1000.0, first_bucket_mb=1000.0";
  const std::vector<Record> records = {training_record("ddp(" + shared + ", reduction=powersgd)", 2, 4, 0.1),
                                       training_record("ddp(" + shared + ")", 2, 4, 0.11)};
  const std::vector<StudyData> studies = {study_of(records)};
  const OverviewTable table = training_overview(merge_repeats(studies));
  ASSERT_EQ(table.groups.size(), 1u);
  EXPECT_THAT(table.groups[0].rows[0][0].text, HasSubstr("ddp("));
  EXPECT_EQ(table.groups[0].rows[1][0].text, "ddp");
  EXPECT_THAT(table.shared, testing::EndsWith("ddp: " + shared));
  std::vector<Record> others;
  for (const char* const more : {"", ", first_bucket_mb=2000.0"})
    others.push_back(training_record("ddp(bucket_mb=1234.5" + std::string(more) + ")", 2, 4, 0.1));
  others.push_back(training_record("fsdp(shard=gradients, offload=optimizer, prefetch=3)", 2, 4, 0.1));
  others.push_back(training_record("fsdp(shard=full, layout=dim0, prefetch=2)", 2, 4, 0.1));
  const std::string text = first_screen(others, {.width = 60});
  EXPECT_THAT(text, Not(HasSubstr("...")));
  EXPECT_THAT(text, HasSubstr("offload=optimizer"));
  EXPECT_LE(longest_line(text), 60u);
}

// Batches that were tried on the way to the largest one that fits are answered by that table.
TEST(Overview, ASearchForTheLargestBatchIsNoRanking) {
  std::vector<Record> records;
  for (const int64_t batch : {4, 8, 16, 12, 14}) {
    records.push_back(training_record("ddp", 2, batch, 0.01 * static_cast<double>(batch)));
    if (batch == 16) records.back().outcome = Outcome::out_of_memory;
  }
  const std::string text = first_screen(records);
  EXPECT_THAT(text, HasSubstr("The largest batch that fits"));
  EXPECT_THAT(text, Not(HasSubstr("Training, on the most ranks")));
  records.resize(3);  // a sweep over batches of which one is too large
  EXPECT_THAT(first_screen(records), HasSubstr("Training, on the most ranks"));
  for (int64_t repeat = 1; repeat <= 2; ++repeat)  // and measured three times
    for (size_t i = 0; i < 3; ++i) {
      Record again = records[i];
      again.point.repeat = repeat;
      again.id = point_id(again.point);
      records.push_back(again);
    }
  EXPECT_THAT(first_screen(records), HasSubstr("Training, on the most ranks"));
}

// A sweep over rank counts asks for scaling first; two counts do not.
TEST(Overview, TheQuestionOfASuiteComesFirst) {
  std::vector<Record> records = {training_record("ddp", 1, 4, 0.1), training_record("ddp", 2, 4, 0.11),
                                 training_record("ddp", 4, 4, 0.12)};
  std::string text = first_screen(records);
  EXPECT_LT(text.find("Scaling: "), text.find("Training, "));
  records.pop_back();
  text = first_screen(records);
  EXPECT_GT(text.find("Scaling: "), text.find("Training, "));
  EXPECT_NE(text.find("Scaling: "), std::string::npos);
}

TEST(Overview, TablesAreNoWiderThanTheTerminal) {
  std::vector<Record> records;
  for (const char* strategy : {"single", "ddp", "fsdp(shard=gradients)", "zero3", "fsdp(shard=optimizer)"})
    for (const int64_t ranks : {1, 2, 4, 8}) {
      records.push_back(training_record(strategy, ranks, 4, 0.1, 0.01));
      records.back().measures.datasheet_flops = 1.5e12;
    }
  for (const char* operation : {"all_reduce", "reduce_scatter"})
    records.push_back(collective_record(operation, 8, 1024, true, 1e-5));
  for (const size_t width : {60u, 80u, 100u})
    EXPECT_LE(longest_line(first_screen(records, {.width = width})), width);
  // At 80 columns nothing is left out but what the speed says.
  const std::string text = first_screen(records, {.width = 80});
  for (const char* const heading : {"step", "fastest", "tokens/s", "memory", "exposed"})
    EXPECT_THAT(text, ContainsRegex(" " + std::string(heading) + "[ \n]"));
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
