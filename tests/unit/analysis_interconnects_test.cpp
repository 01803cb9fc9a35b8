// Tests the comparison of interconnects: formulas computed by hand, and which points of a study represent a
// workload.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/stats/interconnects.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

TEST(Interconnects, AllReduceByHand) {
  const specs::Link link{"mine", 1e-6, 1e9, ""};
  // A ring of 4 ranks takes 6 steps, each of 1 us and a quarter of 8 MB.
  EXPECT_DOUBLE_EQ(all_reduce_s(8e6, link, 4), 6 * (1e-6 + 2e-3));
  EXPECT_DOUBLE_EQ(all_reduce_s(8e6, link, 1), 0);
  // A tree over 1024 ranks takes 10 steps of 1 us up and 10 down, and sends 8 bytes in each direction.
  EXPECT_DOUBLE_EQ(all_reduce_s(8, link, 1024), 2 * (10 * 1e-6 + 8e-9));
}

TEST(Link, IsReadFromText) {
  const specs::Link mine = specs::link_from_text("mine=5us,12.5GB/s");
  EXPECT_EQ(mine.name, "mine");
  EXPECT_DOUBLE_EQ(mine.latency_s, 5e-6);
  EXPECT_DOUBLE_EQ(mine.bytes_per_s, 12.5e9);
  EXPECT_DOUBLE_EQ(specs::link_from_text("ndr400").bytes_per_s, 50e9);
  for (const char* text :
       {"", "unknown", "=5us,1GB/s", "a=5us", "a=5,1GB/s", "a=5us,1GB", "a=5us,0GB/s", "a=,"})
    EXPECT_THROW(specs::link_from_text(text), UsageError) << text;
}

TEST(Link, IsKnownByExactDeviceNameAlone) {
  const auto known = specs::link_of_device("NVIDIA H200");
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->name, "nvlink4");
  EXPECT_FALSE(specs::link_of_device("NVIDIA H200 NVL").has_value());
}

TEST(Interconnects, NearTheSharesThatTeachersUse) {
  // For a step of 100 ms with 300 MB of gradients, courses use a parallel share p of about 0.99 at 600 GB/s
  // and 0.9 at 50 GB/s.
  const OneRankStep workload{"", 0.1, 300e6};
  EXPECT_NEAR(parallel_share(workload, {"", 0, 600e9, ""}), 0.99, 1e-12);
  EXPECT_NEAR(parallel_share(workload, {"", 0, 50e9, ""}), 0.88, 1e-12);
}

TEST(Interconnects, WithoutLatencyTheCurveNearsAmdahls) {
  const OneRankStep workload{"", 0.1, 300e6};
  const specs::Link link{"", 0, 50e9, ""};
  const double s = 1 - parallel_share(workload, link);
  EXPECT_NEAR(interconnect_speed_up(workload, link, 1000000), 1 / (s + (1 - s) / 1e6), 0.01);
  EXPECT_DOUBLE_EQ(interconnect_speed_up(workload, link, 1), 1);
}

TEST(Interconnects, AWorkloadIsTheLargestBatchOnOneRank) {
  Record unknown = training_record("ddp", 1, 4, 0.1);
  unknown.point.training.model = {"future_model", {}};
  const MergedPoints points = merge_repeats(
      {study_of({training_record("ddp", 1, 4, 0.1), training_record("ddp", 1, 8, 0.19), unknown,
                 training_record("single", 1, 8, 0.18), training_record("single", 2, 16, 0.4)})});
  const auto all = workloads(points);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_DOUBLE_EQ(all[0].step_s, 0.18);
  const auto parameters = specs::model_spec("gpt2").table(small_gpt2().options).num_parameters();
  EXPECT_DOUBLE_EQ(all[0].gradient_bytes, 4.0 * static_cast<double>(parameters));
  const Table table = interconnects_table(points, specs::interconnect_links());
  ASSERT_EQ(table.rows.size(), specs::interconnect_links().size());
  EXPECT_NEAR(cell(table, 0, "p").value.get<double>(),
              100 * parallel_share(all[0], specs::interconnect_links()[0]), 1e-9);
}

// A global batch of 8 samples cannot be divided among more than 8 ranks.
TEST(Interconnects, NoSpeedUpOnMoreRanksThanSamples) {
  const std::vector<StudyData> studies = {study_of({training_record("ddp", 1, 8, 0.1)})};
  const MergedPoints points = merge_repeats(studies);
  const Table table = interconnects_table(points, specs::interconnect_links());
  for (const char* ranks : {"2", "8"})
    EXPECT_NE(cell(table, 0, fmt::format("speed-up {} ranks", ranks)).text, "-") << ranks;
  for (const char* ranks : {"32", "128", "512"})
    EXPECT_EQ(cell(table, 0, fmt::format("speed-up {} ranks", ranks)).text, "-") << ranks;
  // The number of samples of this workload is unknown.
  EXPECT_NE(
      cell(interconnects_table({{"gpt2", 0.1, 3e8}}, specs::interconnect_links()), 0, "speed-up 512 ranks")
          .text,
      "-");
}

TEST(Interconnects, APointWithoutDoubtsStandsForItsFamily) {
  Record vague = training_record("single", 1, 8, 0.18);
  vague.measures.step_high_s = 1;
  const std::vector<StudyData> both = {study_of({training_record("ddp", 1, 4, 0.1), vague})},
                               only = {study_of({vague})};
  const MergedPoints points = merge_repeats(both), unreliable = merge_repeats(only);
  EXPECT_DOUBLE_EQ(workloads(points).at(0).step_s, 0.1);
  EXPECT_EQ(cell(interconnects_table(unreliable, specs::interconnect_links()), 0, "warnings").text,
            "uncertain");
}

}  // namespace
}  // namespace shardmark
