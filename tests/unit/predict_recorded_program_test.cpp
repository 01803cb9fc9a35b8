// Points that were held out are predicted by the program that was measured, whatever strategies write today.
#include <gtest/gtest.h>

#include "analysis/frame/merged.h"
#include "analysis/predict/predictor.h"
#include "schema/study.h"

namespace shardmark {
namespace {

// Its fsdp gathered every group twice, as programs did before units stayed in their slots.
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
