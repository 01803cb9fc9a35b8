// Tests the metrics of the IETF draft about fabrics for AI training. The formulas are compared with values
// computed by hand and with the draft's own worked example. Further tests cover which parts of a study are
// used and when the tables are shown.
#include <gmock/gmock.h>

#include "analysis/bmwg/tables.h"
#include "analysis/report.h"
#include "analysis_fixture.h"
#include "specs/algorithms.h"

namespace shardmark {
namespace {

// Returns a series in which all ranks have the same times.
Series times_series(const char* name, int64_t ranks, const std::vector<double>& times_s) {
  Series series{name, ranks, std::ssize(times_s), {}};
  for (int64_t rank = 0; rank < ranks; ++rank)
    series.values.insert(series.values.end(), times_s.begin(), times_s.end());
  return series;
}

Record timed_collective(const std::string& operation, int64_t ranks, int64_t bytes,
                        const std::vector<double>& times_s, int64_t repeat = 0) {
  Record record = collective_record(operation, ranks, bytes, true, times_s.front());
  record.point.repeat = repeat;
  record.id = point_id(record.point);
  record.measures.busbw_gb_s =
      record.measures.algbw_gb_s * specs::collective(operation).busbw.of(static_cast<double>(ranks));
  record.samples = {times_series("step", ranks, times_s)};
  return record;
}

const BmwgMetric& metric(const std::vector<BmwgMetric>& all, const std::string& name) {
  for (const BmwgMetric& one : all)
    if (one.name == name) return one;
  throw ContractError("no metric " + name);
}

// A compute time of 50 ms and an all-reduce of 256 MB on 64 ranks: each rank sends 256 MB x 2 x 63 / 64 = 504
// MB, which takes 10.08 ms at 400 Gbit/s.
constexpr JctIteration kIteration{0.050, 0.0126, 0.066088, 0.05504, 504e6, 50e9};

TEST(BmwgFormulas, AreThoseOfSection10) {
  EXPECT_NEAR(kIteration.roofline_s(), 0.06008, 1e-12);
  EXPECT_NEAR(kIteration.sequential_ratio(), 1.1, 1e-12);
  EXPECT_NEAR(kIteration.left_s(), 0.00504, 1e-12);
  EXPECT_NEAR(kIteration.overlap_fraction(), 0.5, 1e-12);
  EXPECT_NEAR(kIteration.hidden(), 0.6, 1e-12);
}

TEST(BmwgFormulas, JainIsOneWhereAllAreEqual) {
  EXPECT_DOUBLE_EQ(jain_index({3, 3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(jain_index({5, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index({1, 2, 3}), 36.0 / (3 * 14));
}

// The example of the draft about terminology is "AllReduce, n=8, data_size=1 GB, time=10 ms: BusBW = 175
// GB/s".
TEST(BmwgCollectives, BusBandwidthIsThatOfTheDraftsExample) {
  const std::vector<StudyData> studies = {
      study_of({timed_collective("all_reduce", 8, 1'000'000'000, {0.01})})};
  const auto points = merge_repeats(studies);
  const auto rows = bmwg_collectives(points, {.line_bytes_per_s = 200e9});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0].busbw_at(0.5), 175e9, 1);
  EXPECT_NEAR(rows[0].efficiency(), 0.875, 1e-9);
  EXPECT_NEAR(metric(bmwg_metrics(points, {}), "AllReduce BusBW, P50").value, 1400, 1e-6) << "Gbit/s";
}

// The times are 1, 2 and 4 ms, so the relative rates are 1, 1/2 and 1/4. The mean rate is that of three
// messages in 7 ms.
TEST(BmwgCollectives, PercentilesAreThoseOfTheIterationsRates) {
  const std::vector<StudyData> studies = {
      study_of({timed_collective("all_gather", 2, 2'000'000, {0.001, 0.002, 0.004})})};
  const auto rows = bmwg_collectives(merge_repeats(studies), {});
  EXPECT_NEAR(rows.at(0).busbw_at(0.5), 0.5e9, 1);
  EXPECT_NEAR(rows.at(0).busbw_at(1), 1e9, 1);
  EXPECT_NEAR(rows.at(0).mean_busbw(), 3e9 / 7, 1);
  EXPECT_TRUE(std::isnan(rows.at(0).variation)) << "one repeat";
}

TEST(BmwgCollectives, VaryFromRepeatToRepeat) {
  const std::vector<StudyData> studies = {
      study_of({timed_collective("all_gather", 2, 2'000'000, {0.009}, 0),
                timed_collective("all_gather", 2, 2'000'000, {0.011}, 1)})};
  const auto rows = bmwg_collectives(merge_repeats(studies), {});
  EXPECT_NEAR(rows.at(0).variation, std::sqrt(2e-6) / 0.010, 1e-9) << "sample standard deviation / mean";
}

// Rank 0 takes 1 ms and rank 1 takes 3 ms. Jain's index is (1 + 1/3)^2 / (2 (1 + 1/9)) = 0.8.
TEST(BmwgCollectives, RanksHaveTheirOwnThroughputs) {
  Record record = timed_collective("all_to_all", 2, 2'000'000, {0.003});
  record.samples = {{"step", 2, 1, {0.001, 0.003}}};
  const std::vector<StudyData> studies = {study_of({record})};
  EXPECT_NEAR(bmwg_collectives(merge_repeats(studies), {}).at(0).rank_fairness, 0.8, 1e-12);
}

// There are two nodes with two ranks each, so two of the three peers of a rank are on the other node. Each
// rank sends 2 x 3/4 x 1.2 MB, of which two thirds cross the fabric.
TEST(BmwgCollectives, TellWhatCrossesTheFabric) {
  StudyData study = study_of({timed_collective("all_reduce", 4, 1'200'000, {0.003})});
  const auto crossing = [&] { return bmwg_collectives(merge_repeats({study}), {}).at(0).fabric_bytes; };
  study.environment.rank_nodes = {"a", "a", "a", "a"};
  EXPECT_EQ(crossing(), 0);
  study.environment.rank_nodes = {"a", "a", "b", "b"};
  EXPECT_NEAR(crossing(), 1.2e6, 1e-6);
  study.environment.transport = "nccl";
  EXPECT_TRUE(std::isnan(crossing())) << "its algorithm is not known";
}

TEST(BmwgCollectives, NameTheAlgorithmOfEachSize) {
  using enum specs::Collective;
  EXPECT_EQ(specs::mpi_algorithm(all_reduce, 1 << 20, 8), "direct reduce-scatter, then direct all-gather");
  EXPECT_EQ(specs::mpi_algorithm(all_reduce, 4096, 8), "whole messages to all, one round");
  EXPECT_EQ(specs::mpi_algorithm(all_reduce, 4096, 16), "binomial tree up and down");
  StudyData study = study_of({timed_collective("all_reduce", 2, 1 << 20, {0.001})});
  study.environment.transport = "nccl";
  EXPECT_EQ(bmwg_collectives(merge_repeats({study}), {}).at(0).algorithm, "not verified");
}

// The load alone takes 10 ms, the two collectives alone take 6 ms, and all together take 13 ms.
Record rounds_beside(const std::string& load) {
  Record record = timed_collective("all_reduce", 2, 150'000'000, {0.03});
  record.point.collective.beside = load;
  record.id = point_id(record.point);
  record.measures.num_operations = 2;
  record.measures.num_steps = 4;
  record.measures.busbw_gb_s = 150e6 / 0.003 / 1e9;  // the bandwidth of the collective alone
  for (const auto& [name, time_s] : {std::pair{"load_alone", 0.010},
                                     {"collective_alone", 0.006},
                                     {"together", 0.013},
                                     {"load_together", 0.012},
                                     {"collective_together", 0.009}})
    record.samples.push_back(times_series(name, 2, {time_s, time_s, time_s, time_s}));
  return record;
}

TEST(BmwgJcts, OfRoundsComputeThenCommunicate) {
  const std::vector<StudyData> studies = {study_of({rounds_beside("matmul(m=64)")})};
  const auto points = merge_repeats(studies);
  const auto rows = bmwg_jcts(points, {.line_bytes_per_s = 100e9});
  ASSERT_EQ(rows.size(), 1u);
  const JctIteration& mean = rows[0].mean;
  EXPECT_EQ(rows[0].iterations, 4);
  EXPECT_NEAR(mean.sequential_s, 0.016, 1e-12);
  EXPECT_NEAR(mean.moved_bytes, 300e6, 1e-3) << "two operations of 150 MB, factor 1 on two ranks";
  EXPECT_NEAR(mean.sequential_ratio(), 16 / 13.0, 1e-9);
  EXPECT_NEAR(mean.overlap_fraction(), 0, 1e-9) << "3 ms are left of 3 ms at line rate";
  EXPECT_NEAR(mean.hidden(), 0.5, 1e-9);
  EXPECT_NEAR(metric(bmwg_metrics(points, {.line_bytes_per_s = 100e9}), "JCT ratio, synthetic").value,
              16 / 13.0, 1e-9);
  EXPECT_THAT(metric(bmwg_metrics(points, {}), "JCT ratio, synthetic").why_not,
              ::testing::HasSubstr("--line-rate"));
}

TEST(BmwgJcts, OfAnotherCollectiveAreInterference) {
  const std::vector<StudyData> studies = {study_of({rounds_beside("collective(operation=all_gather)")})};
  const auto points = merge_repeats(studies);
  EXPECT_TRUE(bmwg_jcts(points, {}).empty());
  const BmwgMetric factor =
      metric(bmwg_metrics(points, {}), "largest interference factor of two collectives");
  EXPECT_NEAR(factor.value, 1.5, 1e-9);
  EXPECT_EQ(factor.samples, 4);
}

TEST(BmwgJcts, OfStepsAreThoseOfTheirParts) {
  Record record = training_record("ddp", 2, 4, 0.020, 0.002);
  record.measures.traffic_bytes = 200e6;
  record.samples = {times_series("step", 2, {0.019, 0.021}), times_series("compute_only", 2, {0.018}),
                    times_series("communication_only", 2, {0.008})};
  const std::vector<StudyData> studies = {study_of({record})};
  const auto rows = bmwg_jcts(merge_repeats(studies), {.line_bytes_per_s = 50e9});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0].mean.overlapped_ratio(), 20 / 22.0, 1e-9) << "C = 18 ms, 4 ms at line rate";
  EXPECT_NEAR(rows[0].mean.overlap_fraction(), 0.5, 1e-9);
  EXPECT_NEAR(rows[0].mean.hidden(), 0.75, 1e-9);
  EXPECT_TRUE(std::isnan(rows[0].mean.sequential_s)) << "no step ran its parts one after the other";
}

TEST(BmwgTables, AreThereWhereTheyAreAskedForAlone) {
  StudyData study = study_of({timed_collective("all_reduce", 2, 1 << 20, {0.001})});
  const auto keys = [&](const BmwgQuery& query) {
    std::vector<std::string> all;
    ReportInputs inputs;
    inputs.bmwg = query;
    for (const Table& table : make_report({study}, inputs)) all.push_back(table.key);
    return all;
  };
  using ::testing::IsSupersetOf, ::testing::Not, ::testing::Contains;
  EXPECT_THAT(keys({}), Not(Contains("bmwg")));
  EXPECT_THAT(keys({.is_named = true}), IsSupersetOf({"bmwg", "bmwg_collectives", "bmwg_form"}));
  EXPECT_THAT(keys({.line_bytes_per_s = 1e9}), Contains("bmwg"));
  study.environment.suite_text = "# name: other\nname: bmwg\nrepeats: 3\n";
  EXPECT_THAT(keys({}), Contains("bmwg"));
}

// Every metric has either a value or a reason why it has none, and those with a value come first.
TEST(BmwgTables, SayWhyAMetricHasNoValue) {
  const std::vector<StudyData> studies = {study_of({timed_collective("all_reduce", 2, 1 << 20, {0.001})})};
  const auto all = bmwg_metrics(merge_repeats(studies), {});
  EXPECT_GT(all.size(), 40u);
  bool has_ended = false;
  for (const BmwgMetric& one : all) {
    EXPECT_NE(std::isnan(one.value), one.why_not.empty()) << one.name;
    has_ended = has_ended || std::isnan(one.value);
    EXPECT_EQ(has_ended, std::isnan(one.value)) << one.name;
  }
}

TEST(BmwgTables, FormSaysWhatTheStudyDoesNotKnow) {
  StudyData study = study_of({timed_collective("all_reduce", 2, 1 << 20, {0.001})});
  const Table form = bmwg_form_table(bmwg_form({study}, merge_repeats({study}), {.line_bytes_per_s = 50e9}));
  const auto said = [&](const std::string& item) {
    for (size_t row = 0; row < form.rows.size(); ++row)
      if (cell(form, row, "item").text == item) return cell(form, row, "said").text;
    return std::string("no such item");
  };
  EXPECT_EQ(said("NIC firmware"), "not stated");
  EXPECT_EQ(said("accelerators"), "4 x Some CPU");
  EXPECT_EQ(said("B_acc"), "400.0 Gbit/s, as given");
  EXPECT_THAT(said("departures"),
              ::testing::StartsWith("1 to 1 iterations of a collective (draft: from 100)"));
}

}  // namespace
}  // namespace shardmark
