// Held-out points are predicted with the program that was recorded in the study, whatever the strategies
// generate today.
#include <gtest/gtest.h>

#include "analysis/frame/merged.h"
#include "analysis/predict/predictor.h"
#include "schema/study.h"

namespace shardmark {
namespace {

// In this study, fsdp gathered every group twice, because units did not stay in their slots then.
TEST(RecordedProgram, PredictsThePointsOfAnOlderStudy) {
  const std::vector<StudyData> studies = {read_study(SHARDMARK_TEST_DATA "/studies/shaped.h5")};
  const std::vector<MergedPoint> points = merge_repeats(studies);
  int64_t num_checked = 0;
  for (const Predictor& predictor : make_predictors(points))
    for (const HeldOut& held : predictor.held_out()) {
      const Point& point = held.merged->point;
      if (to_text(point.training.strategy).find("shard=full") == std::string::npos || point.ranks != 2 ||
          point.training.batch_size != 2)
        continue;
      EXPECT_NEAR(held.predicted.communication_s, 0.16682, 1e-4);
      ++num_checked;
    }
  EXPECT_EQ(num_checked, 1);
}

}  // namespace
}  // namespace shardmark
