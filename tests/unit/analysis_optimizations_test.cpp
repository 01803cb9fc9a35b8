// Tests the table of communication optimizations: which point is the baseline, and how its ratios are formed.
#include <gtest/gtest.h>

#include <set>

#include "analysis_fixture.h"

namespace shardmark {
namespace {

Record ddp_record(const std::string& options, double communication_s, double step_s,
                  const std::string& transport = "") {
  Record record = training_record(options.empty() ? "ddp" : "ddp(" + options + ")", 4, 8, step_s);
  record.point.transport = transport;
  record.measures.communication_only_s = communication_s;
  record.id = point_id(record.point);
  return record;
}

const std::string kOneBucket = "bucket_mb=1000, first_bucket_mb=1000";

TEST(OptimizationsTable, ComparesWithOnePlainAllReduceOfEverything) {
  Record hierarchical = ddp_record(kOneBucket, 0.05, 0.2, "hierarchical(form=sharded, ranks_per_node=2)");
  hierarchical.measures.between_nodes_bytes = 3e6;
  const auto points = merge_repeats({study_of({
      ddp_record("bucket_mb=1", 0.09, 0.2),
      ddp_record(kOneBucket + ", reduction=topk(ratio=0.01)", 0.02, 0.4),
      ddp_record(kOneBucket, 0.1, 0.3),
      hierarchical,
      training_record("fsdp", 4, 8, 0.1),
  })});
  const Table table = optimizations_table(points);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(cell(table, 0, "communication alone time").value, 100);
  EXPECT_EQ(cell(table, 0, "communication alone speed-up").value, 1);
  EXPECT_EQ(cell(table, 0, "traffic fewer").value, 1);
  EXPECT_EQ(cell(table, 0, "gradient itself").value, 1);
  std::set<std::string> optimizations;
  for (size_t row = 0; row < 4; ++row) optimizations.insert(cell(table, row, "optimization").text);
  EXPECT_EQ(optimizations, (std::set<std::string>{"baseline", "bucketing", "compression", "hierarchical"}));
  EXPECT_EQ(cell(table, 0, "optimization").text, "baseline");
  for (size_t row = 1; row < 4; ++row) {
    if (cell(table, row, "strategy").text.find("topk") != std::string::npos) {
      EXPECT_DOUBLE_EQ(cell(table, row, "communication alone speed-up").value.get<double>(), 5);
      EXPECT_DOUBLE_EQ(cell(table, row, "step speed-up").value.get<double>(), 0.3 / 0.4);
      EXPECT_NEAR(cell(table, row, "traffic fewer").value.get<double>(), 25, 0.01);  // 1 / (0.01 x 4 ranks)
      EXPECT_NEAR(cell(table, row, "gradient itself").value.get<double>(), 100, 0.01);
      EXPECT_NEAR(cell(table, row, "communication alone effective").value.get<double>(),
                  points.front().measures.parameter_bytes / 0.02 / 1e9, 1e-6);
    } else {
      EXPECT_EQ(cell(table, row, "traffic fewer").value, 1);
    }
    const bool between = !cell(table, row, "between nodes").value.is_nothing();
    EXPECT_EQ(between, cell(table, row, "over").text.starts_with("hierarchical"));
  }
}

TEST(OptimizationsTable, NeedsABaselineAndSomethingToCompare) {
  const auto rows = [](std::vector<Record> records) {
    return optimizations_table(merge_repeats({study_of(std::move(records))})).rows.size();
  };
  EXPECT_EQ(rows({ddp_record("", 0.1, 0.3)}), 0u);
  EXPECT_EQ(rows({ddp_record("reduction=int8", 0.1, 0.3), ddp_record("reduction=topk", 0.1, 0.3)}), 0u);
  EXPECT_EQ(rows({ddp_record("", 0.1, 0.3), ddp_record("reduction=int8", 0.1, 0.3)}), 2u);
  Record other_batch = ddp_record("reduction=int8", 0.1, 0.3);
  other_batch.point.training.batch_size = 4;
  EXPECT_EQ(rows({ddp_record("", 0.1, 0.3), other_batch}), 0u);
}

}  // namespace
}  // namespace shardmark
