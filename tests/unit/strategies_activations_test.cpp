// Predicted memory of activations against what ranks measured: studies of an H100 that are kept.
#include <gtest/gtest.h>

#include "schema/study.h"
#include "specs/specs.h"
#include "strategies/activations.h"

namespace shardmark::strategies {
namespace {

double predicted(const Point& point) {
  return activation_bytes(RankStep(point).input(), static_cast<double>(point.training.batch_size));
}

TEST(Activations, AreWithinATenthOfWhatAGpuHeld) {
  int64_t count = 0;
  for (const char* name : {"h100-gpu-single.h5", "h100-gpu-strategies.h5"}) {
    const StudyData study = read_study(std::string(SHARDMARK_SOURCE_DIR "/results/reference/") + name);
    for (const Record& record : study.records) {
      if (record.point.workload != "training" || record.outcome != Outcome::ok) continue;
      ++count;
      const TrainingPoint& t = record.point.training;
      EXPECT_NEAR(predicted(record.point) / record.measures.activation_bytes(), 1, 0.1)
          << to_text(t.model) << " " << to_text(t.strategy) << " " << t.precision << ", recomputation "
          << t.recompute << ", batch " << t.batch_size;
    }
  }
  EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace shardmark::strategies
