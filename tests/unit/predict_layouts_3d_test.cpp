// The table of 3D layouts: what is chosen, and what it says where nothing can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/predict/layouts_3d.h"
#include "analysis_fixture.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// 4 layers, 4 heads; 16 samples in pairs, on nodes of 4 ranks.
parallel3d::Job3d small_job() {
  parallel3d::Job3d job = parallel3d::job_3d(small_gpt2());
  job.global_batch = 16;
  job.micro_batch = 2;
  job.bytes = specs::element_bytes("fp32", "same");
  job.optimizer_elements = 2;
  job.compute_s = 0.1;
  job.ranks_per_node = 4;
  job.operation_s = [](specs::Collective operation, double bytes, specs::Span span) {
    return specs::collective_s(operation, bytes, span, {{1e-6, 1e-10}, {1e-5, 1e-9}});
  };
  return job;
}

double value(const Table& table, size_t row, const std::string& column) {
  return cell(table, row, column).value.get<double>();
}

TEST(Layouts3dTable, TheFastestThatFitComeFirst) {
  const parallel3d::Job3d job = small_job();
  const Table all = layouts_3d_table(job, 8, NAN);
  ASSERT_EQ(all.rows.size(), 8u);  // t and p of 1, 2, 4, without t = p = 4
  for (size_t i = 1; i < all.rows.size(); ++i) EXPECT_LE(value(all, i - 1, "step"), value(all, i, "step"));
  for (size_t i = 0; i < all.rows.size(); ++i) {
    double sum = 0;
    for (const char* part : {"compute", "tensor", "pipeline", "bubble", "data"})
      sum += value(all, i, std::string("of the step ") + part);
    EXPECT_NEAR(sum, value(all, i, "step"), 1e-9 * sum);
    EXPECT_NEAR(value(all, i, "tokens/s"), 16 * 128 * 1e3 / value(all, i, "step"), 1e-6);
  }
  EXPECT_THAT(all.notes[0], HasSubstr("unknown"));

  double least = INFINITY, most = 0;
  for (size_t i = 0; i < all.rows.size(); ++i) {
    const double bytes =
        (value(all, i, "memory per rank states") + value(all, i, "memory per rank activations")) * 0x1p20;
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  const Table some = layouts_3d_table(job, 8, most - 1);
  EXPECT_LT(some.rows.size(), 8u);
  EXPECT_GT(some.rows.size(), 0u);
  const Table none = layouts_3d_table(job, 8, least - 1);
  EXPECT_THAT(none.notes[0], StartsWith("None of 8 layouts fits"));
  EXPECT_NEAR((value(none, 0, "memory per rank states") + value(none, 0, "memory per rank activations")),
              least / 0x1p20, 1e-6);
}

TEST(Layouts3dTable, WhatWasNotMeasuredIsLeftOut) {
  parallel3d::Job3d job = small_job();
  const auto known = job.operation_s;
  job.operation_s = [&](specs::Collective operation, double bytes, specs::Span span) {
    return operation == specs::Collective::send_recv ? NAN : known(operation, bytes, span);
  };
  const Table some = layouts_3d_table(job, 8, NAN);
  ASSERT_EQ(some.rows.size(), 3u);  // without stages
  EXPECT_THAT(some.notes[0], HasSubstr("5 more"));
  job.operation_s = [](specs::Collective, double, specs::Span) { return NAN; };
  const Table none = layouts_3d_table(job, 8, NAN);
  EXPECT_THAT(none.notes[0], StartsWith("None of 8 layouts can be timed"));
  ASSERT_EQ(none.rows.size(), 8u);
  EXPECT_EQ(cell(none, 0, "step").text, "-");
  EXPECT_LE(value(none, 0, "memory per rank states"), value(none, 7, "memory per rank states"));
}

TEST(Layouts3dTable, SaysWhyThereIsNone) {
  const Table table = layouts_3d_table(small_job(), 7, NAN);
  EXPECT_TRUE(table.rows.empty());
  EXPECT_THAT(table.notes[0], StartsWith("No layout uses all 7 ranks"));
}

}  // namespace
}  // namespace shardmark
