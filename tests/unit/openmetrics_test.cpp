// Tests the metrics of a running sweep: units, values, and which metrics are left out.
#include "analysis/openmetrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StudyData study_of(std::vector<Record> records) {
  StudyData study;
  study.path = "x.h5";
  study.records = std::move(records);
  return study;
}

TEST(OpenMetrics, SayHowFarASweepIs) {
  SweepProgress sweep{"tiny \"x\"", true, 2, 3, 1, "gpt2 ddp", 1.5e9, 1.4e9, 1.6e9};
  const std::string running = progress_metrics(sweep);
  EXPECT_THAT(running, HasSubstr("shardmark_sweep_running{study=\"tiny \\\"x\\\"\"} 1\n"));
  EXPECT_THAT(running, HasSubstr("shardmark_sweep_done_points{study=\"tiny \\\"x\\\"\"} 2\n"));
  EXPECT_THAT(running, HasSubstr("shardmark_sweep_to_go_points{study=\"tiny \\\"x\\\"\"} 3\n"));
  EXPECT_THAT(running, HasSubstr("shardmark_sweep_failed_points{study=\"tiny \\\"x\\\"\"} 1\n"));
  EXPECT_THAT(running, HasSubstr("# UNIT shardmark_sweep_elapsed_seconds seconds\n"));
  EXPECT_THAT(running, HasSubstr("shardmark_sweep_elapsed_seconds{study=\"tiny \\\"x\\\"\"} 200000000\n"));
  EXPECT_THAT(running, HasSubstr(",point=\"gpt2 ddp\"} 1500000000\n"));
}

TEST(OpenMetrics, LeaveOutWhatIsNotThere) {
  SweepProgress sweep{"x", false, 0, 0, 0};
  const std::string nothing = progress_metrics(sweep);
  EXPECT_THAT(nothing, HasSubstr("shardmark_sweep_running{study=\"x\"} 0\n"));
  EXPECT_THAT(nothing, Not(HasSubstr("sweep_point_start_time")));
  EXPECT_EQ(point_metrics({study_of({})}), "");
  const std::string points = point_metrics({study_of({training_record("ddp", 2, 4, 0.1)})});
  EXPECT_THAT(points, HasSubstr("shardmark_points{outcome=\"ok\"} 1\n"));
  EXPECT_THAT(points, Not(HasSubstr("bus_bandwidth")));
}

}  // namespace
}  // namespace shardmark
