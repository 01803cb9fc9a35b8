// Tests which records count as repeats of the same point, and how their numbers are combined.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "analysis/frame/merged.h"
#include "analysis/overview/overview.h"
#include "analysis/plots/plots.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Record launch_of(int64_t repeat, double step_s) {
  Record record = training_record("ddp", 2, 4, step_s);
  record.point.repeat = repeat;
  record.id = point_id(record.point);
  return record;
}

TEST(Merge, RepeatsBecomeOnePointOfMedians) {
  const auto points = merge_repeats({study_of({launch_of(0, 0.1), launch_of(1, 0.4), launch_of(2, 0.2)})});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].repeats, 3);
  EXPECT_DOUBLE_EQ(points[0].measures.step_s, 0.2);
  EXPECT_DOUBLE_EQ(points[0].measures.samples_per_s, 8 / 0.2);
  EXPECT_DOUBLE_EQ(points[0].measures.step_low_s,
                   0.1 * 0.99);  // from the lowest to the highest end of the three intervals
  EXPECT_DOUBLE_EQ(points[0].measures.step_high_s, 0.4 * 1.01);
}

TEST(Merge, OrdersModelsByTheirNumbers) {
  std::vector<Record> records;
  for (const char* model : {"resnet(width=16)", "resnet(width=8)", "resnet(width=128)"}) {
    records.push_back(training_record("ddp", 2, 4, 0.1));
    records.back().point.training.model = choice_from_text(model);
  }
  std::string order;
  for (const MergedPoint& point : merge_repeats({study_of(records)}))
    order += to_text(point.point.training.model) + " ";
  EXPECT_EQ(order, "resnet(width=8) resnet(width=16) resnet(width=128) ");
}

TEST(Merge, RatesAreMergedThroughTheirCosts) {
  const auto points = merge_repeats({study_of({launch_of(0, 0.1), launch_of(1, 0.3)})});
  EXPECT_DOUBLE_EQ(points[0].measures.step_s, 0.2);
  EXPECT_DOUBLE_EQ(points[0].measures.samples_per_s, 8 / 0.2);  // instead of the mean of 80 and 26.7
}

TEST(Merge, SixRepeatsHaveAnIntervalOfTheirOwn) {
  std::vector<Record> records;
  for (int64_t repeat = 0; repeat < 6; ++repeat)
    records.push_back(launch_of(repeat, 0.1 + 0.01 * static_cast<double>(repeat)));
  const auto points = merge_repeats({study_of(records)});
  EXPECT_DOUBLE_EQ(points[0].measures.step_low_s, 0.1);  // the order statistics 1 and 6
  EXPECT_DOUBLE_EQ(points[0].measures.step_high_s, 0.15);
}

TEST(Merge, StudiesOfOneMachineJoinAndOthersStayApart) {
  StudyData first = study_of({launch_of(0, 0.1)}), other = first;
  other.environment.devices = {"Another CPU"};
  EXPECT_EQ(merge_repeats({first, first}).size(), 1u);
  EXPECT_EQ(merge_repeats({first, first})[0].repeats, 2);
  EXPECT_EQ(merge_repeats({first, first, other}).size(), 2u);
}

// Returns training points and all-reduces on 2 ranks that are spread over `nodes` nodes and take `factor`
// times as long.
StudyData two_ranks_on(size_t nodes, double factor) {
  StudyData study =
      study_of({training_record("single", 2, 4, 0.05 * factor), training_record("ddp", 2, 4, 0.1 * factor),
                collective_record("all_reduce", 2, 64 << 20, true, 1e-3 * factor),
                collective_record("all_reduce", 2, 1024, true, 1e-5 * factor)});
  study.environment.nodes = {"a", "b"};
  study.environment.nodes.resize(nodes);
  study.environment.rank_nodes = {"a", nodes == 1 ? "a" : "b"};
  return study;
}

std::vector<std::string> column_of(const Table& table, const std::string& column) {
  std::vector<std::string> texts;
  for (size_t row = 0; row < table.rows.size(); ++row) texts.push_back(cell(table, row, column).text);
  return texts;
}

using Texts = std::vector<std::string>;

// No table, plot or screen joins or compares points on one node with points on two.
TEST(Merge, NodesTellPointsOfAsManyRanksApart) {
  const std::vector<StudyData> studies = {two_ranks_on(1, 1), two_ranks_on(2, 3)};
  const auto points = merge_repeats(studies);
  const Table strategies = strategies_table(points);
  EXPECT_EQ(column_of(strategies, "nodes"), (Texts{"1", "1", "2", "2"}));
  EXPECT_EQ(column_of(strategies, "step time median"), (Texts{"50.00", "100.0", "150.0", "300.0"}));
  EXPECT_EQ(column_of(strategies, "x single"), (Texts{"1.00", "2.00", "1.00", "2.00"}));
  const auto collectives = collective_tables(points);
  ASSERT_EQ(collectives.size(), 1u);
  EXPECT_EQ(column_of(collectives[0], "nodes"), (Texts{"1", "1", "2", "2"}));
  EXPECT_EQ(column_of(collectives[0], "in-place time"), (Texts{"10.00", "1,000", "30.00", "3,000"}));
  for (const auto& [first, second] : {std::pair(0, 1), {1, 0}}) {
    const std::vector<StudyData> ordered = {studies[first], studies[second]};
    const auto merged = merge_repeats(ordered);
    const std::string screen = to_text(overview_of(ordered, merged, {}, scaling_series(merged)), {});
    for (const char* expected :
         {"\n2 ranks on 1 node\n  single, ", "\n2 ranks on 2 nodes\n  single, ", "\nfloat32, over mpi\n"})
      EXPECT_THAT(screen, HasSubstr(expected));
    EXPECT_THAT(screen, ContainsRegex("\n2 ranks on 1 node\n  all_reduce +[0-9.]+ +64.0 MiB +10.0 "));
    EXPECT_THAT(screen, ContainsRegex("\n2 ranks on 2 nodes\n  all_reduce +[0-9.]+ +64.0 MiB +30.0 "));
  }
  for (const Plot& plot : collective_plots(points)) EXPECT_EQ(plot.curves.at(0).points.size(), 2u);
  EXPECT_EQ(collective_plots(points).size(), 4u);  // bandwidth and time, each for one node and for two
  EXPECT_EQ(speed_plots(points, PlotNames(points)).size(), 2u);
}

// One node has 1, 2 and 4 ranks, two nodes have 2 and 4. A fit only uses points with the same kind of link
// between nodes.
TEST(Merge, FitsJoinNoNodes) {
  std::vector<StudyData> studies;
  for (const bool spread : {false, true}) {
    std::vector<Record> records;
    for (const int64_t ranks : {1, 2, 4})
      records.push_back(training_record("ddp", ranks, 4, 0.1 * (spread && ranks > 1 ? 3 : 1)));
    studies.push_back(study_of(records));
    studies.back().environment.nodes = {"a"};
    studies.back().environment.rank_nodes = {"a", "a", "a", "a"};
    if (!spread) continue;
    studies.back().environment.nodes = {"a", "b"};
    studies.back().environment.rank_nodes = {"a", "b", "a", "b"};
  }
  const auto points = merge_repeats(studies);
  std::string found;
  for (const ScalingSeries& series : scaling_series(points)) {
    if (series.scaling != Scaling::weak) continue;
    found += unit_text(series) + ":";
    for (const ScalingPoint& point : series.points)
      found += fmt::format(" {}/{} {:.0f}%", point.merged->point.ranks, point.merged->nodes,
                           100 * point.efficiency.value);
    found += "; ";
  }
  EXPECT_EQ(found,
            "ranks of one node: 1/1 100% 2/1 100% 4/1 100%; nodes of 1 rank: 1/1 100% 2/2 33%; "
            "nodes of 2 ranks: 2/1 100% 4/2 33%; ");
}

TEST(Merge, MachinesAreNamedWhereThereAreSeveral) {
  std::vector<StudyData> studies = {two_ranks_on(1, 1), two_ranks_on(1, 3)};
  const auto alone = merge_repeats({studies[0]});
  EXPECT_EQ(collective_setting_text(alone.front()), "2 ranks over mpi, float32");
  EXPECT_EQ(column_of(strategies_table(alone), "nodes"),
            (Texts{"", ""}));  // all points ran on the same nodes
  studies[1].environment.devices = {"Another CPU"};
  const auto points = merge_repeats(studies);
  const std::string screen = to_text(overview_of(studies, points, {}, scaling_series(points)), {});
  EXPECT_THAT(screen, ContainsRegex("\nSome CPU, 1 thread per rank\n  all_reduce .* 10.0 "));
  EXPECT_THAT(screen, ContainsRegex("\nAnother CPU, 1 thread per rank\n  all_reduce .* 30.0 "));
  EXPECT_EQ(column_of(strategies_table(points), "x single"), (Texts{"1.00", "2.00", "1.00", "2.00"}));
  EXPECT_EQ(column_of(collective_tables(points).at(0), "in-place time"),
            (Texts{"30.00", "3,000", "10.00", "1,000"}));
}

TEST(Merge, HowLongAndHowWrittenDoesNotMatterButTheWorkDoes) {
  Record longer = launch_of(0, 0.1), strong = launch_of(0, 0.1), seed = launch_of(0, 0.1),
         accumulated = launch_of(0, 0.1), shard = training_record("fsdp", 2, 4, 0.1),
         gradients = training_record("fsdp(shard=gradients)", 2, 4, 0.1);
  longer.point.sampling.max_steps = 1000;
  strong.point.training.scaling = "strong";
  seed.point.seed = 2;
  accumulated.point.training.accumulation = 2;
  const auto points =
      merge_repeats({study_of({launch_of(0, 0.1), longer, strong, seed, accumulated, shard, gradients})});
  ASSERT_EQ(points.size(), 5u);
  int64_t repeats = 0;
  for (const MergedPoint& merged : points) repeats = std::max(repeats, merged.repeats);
  EXPECT_EQ(repeats, 3);
}

// A loss is comparable only after the same number of steps, so other losses are not averaged.
TEST(Merge, LossesAfterOtherNumbersOfStepsAreNotAveraged) {
  const auto study = [](int64_t num_steps, double loss) {
    Record cut = launch_of(0, 0.1), whole = training_record("ddp", 2, 8, 0.1);
    cut.point.training.accumulation = 2;
    for (Record* record : {&cut, &whole}) {
      record->measures.num_steps = num_steps;
      record->measures.loss_last = loss;
      record->id = point_id(record->point);
    }
    return study_of({cut, whole});
  };
  const auto texts = [](const std::vector<StudyData>& studies) {
    const Table table = accumulation_table(merge_repeats(studies));
    Texts all;
    for (const char* column : {"steps", "loss", "difference"})
      for (const std::string& text : column_of(table, column)) all.push_back(text);
    return all;
  };
  const StudyData few = study(10, 2), many = study(30, 1);
  EXPECT_EQ(texts({few, few}), (Texts{"10", "10", "2.000000", "2.000000", "0", "0"}));
  const Texts nothing = {"-", "-", "-", "-", "-", "-"};
  EXPECT_EQ(texts({few, many}), nothing);
  EXPECT_EQ(texts({many, few}), nothing);
}

TEST(Merge, OnlyOkPointsAreMeasured) {
  Record failed = launch_of(0, 0.1);
  failed.outcome = Outcome::wrong;
  const std::vector<StudyData> studies = {study_of({failed, launch_of(1, 0.2)})};
  const auto points = merge_repeats(studies);  // they point into the studies
  ASSERT_EQ(points.size(), 1u);
  EXPECT_DOUBLE_EQ(points[0].measures.step_s, 0.2);
  EXPECT_EQ(cell(problems_table(studies, points, {}, {}), 0, "what").text, "wrong");
}

// Points that ran out of memory are grouped by powers of two of the amount that they asked for.
TEST(Merge, OutOfMemoryByPowersOfTwo) {
  std::vector<Record> records;
  for (const char* wanted : {"70.3 MiB", "100 MiB", "1.50 GiB"}) {
    records.push_back(launch_of(std::ssize(records), 0.1));
    records.back().outcome = Outcome::out_of_memory;
    records.back().reason =
        std::string("out of memory: ") + wanted + " wanted, the limit of a rank is 64.0 MiB";
  }
  const Table table = problems_table({study_of(records)}, {}, {}, {});
  ASSERT_EQ(table.rows.size(), 3u);  // the last one says that the report can show no number
  EXPECT_EQ(cell(table, 0, "why").text,
            "out of memory: 1.00 GiB to 2.00 GiB wanted, the limit of a rank is 64.0 MiB");
  EXPECT_EQ(cell(table, 1, "why").text,
            "out of memory: 64.0 MiB to 128 MiB wanted, the limit of a rank is 64.0 MiB");
  EXPECT_EQ(cell(table, 1, "points").text, "2");
}

// If all ranks keep all their data in an all_to_all_v, nothing moves. The bus bandwidth is then undefined
// instead of 0.
TEST(Merge, NothingThatMovesHasNoBusBandwidth) {
  std::vector<StudyData> studies;
  for (const char* day : {"1", "2"}) {
    Record record = collective_record("all_to_all_v", 4, 1024, false, 1e-5);
    record.started = std::string("2026-01-0") + day;
    record.measures.busbw_gb_s = 0;
    studies.push_back(study_of({record}));
    studies.back().environment.started = record.started;
    EXPECT_TRUE(std::isnan(merge_repeats(studies).front().measures.busbw_gb_s));
  }
}

// Values that are taken from the first repeat do not depend on the order of the files. One rank has no bus
// bandwidth, whatever the number of repeats.
TEST(Merge, TheOrderOfFilesDecidesNothing) {
  std::vector<StudyData> studies;
  for (const char* day : {"1", "2", "3"}) {
    Record record = launch_of(0, 0.1), alone = collective_record("broadcast", 1, 1024, true, 1e-5);
    record.started = alone.started = std::string("2026-01-0") + day;
    record.measures.num_operations = std::stoi(day);
    record.samples.push_back({"program", 1, 1, {std::stod(day)}});
    alone.measures.busbw_gb_s = 0;
    studies.push_back(study_of({record, alone}));
    studies.back().environment.started = record.started;
  }
  EXPECT_TRUE(std::isnan(merge_repeats({studies[0]}).front().measures.busbw_gb_s));
  do {
    const auto points = merge_repeats(studies);
    ASSERT_EQ(points.size(), 2u);
    EXPECT_TRUE(std::isnan(points[0].measures.busbw_gb_s));
    EXPECT_EQ(points[1].records.front()->series("program")->at(0, 0), 1);
    EXPECT_EQ(points[1].environments.front()->started, "2026-01-01");
    EXPECT_EQ(points[1].measures.num_operations, 1);
  } while (std::next_permutation(studies.begin(), studies.end(), [](const auto& a, const auto& b) {
    return a.environment.started < b.environment.started;
  }));
}

TEST(Merge, OneUnreliableRepeatMakesThePointUnreliable) {
  Record unreliable = launch_of(1, 0.1);
  unreliable.measures.verified = "unverified: too large";
  unreliable.measures.oversubscribed = true;
  Record checked = collective_record("all_reduce", 2, 1024, true, 1e-5), unchecked = checked;
  unchecked.measures.num_wrong = -1;
  for (const std::vector<Record>& records : {std::vector{checked, unchecked}, {unchecked, checked}})
    EXPECT_EQ(merge_repeats({study_of(records)})[0].measures.num_wrong, -1);
  const auto points = merge_repeats({study_of({launch_of(0, 0.1), unreliable, launch_of(2, 0.1)})});
  EXPECT_EQ(points[0].measures.verified, "unverified: too large");
  EXPECT_TRUE(points[0].measures.oversubscribed);
}

}  // namespace
}  // namespace shardmark
