// Compares the predicted memory of activations with measurements, in the studies of an H100 in this
// repository.
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

// Computed by hand for 2 tensor-parallel ranks in bf16, as elements per sample: the output of the embedding
// has 32, a layer has 4 x 32 that every rank holds and (4 x (96 + 2)) / 2 that are sharded, and the head
// takes 32 as its input. A rank has 50 of the 100 words of the vocabulary, so 4 x 50 logits in bf16, which
// their softmax and gradient overwrite. Its backward needs the gradients of its input and of the sum over
// ranks, 2 x 32, and then that of a rank's words, 50 x 8 for all samples.
TEST(Activations, OfCutWordsIn16Bits) {
  Point point;
  point.workload = "training";
  point.ranks = 2;
  TrainingPoint& t = point.training;
  t.model = resolve(choice_from_text("gpt2(layers=1, width=8, heads=2, sequence=4, vocabulary=100)"),
                    specs::model_spec("gpt2").options, "model");
  t.strategy = resolve({"ddp", {}}, strategy("ddp").options, "strategy");
  t.schedule = resolve({"1f1b", {}}, pipeline_schedule("1f1b").options, "pipeline schedule");
  t.optimizer = resolve({"sgd", {}}, specs::optimizer_specs().at("sgd").options, "optimizer");
  t.precision = "bf16";
  t.tensor = 2;
  t.batch_size = 3;
  EXPECT_EQ(predicted(point), 3 * 2 * (32 + 128 + 196 + 32 + 200 + 64) + 2 * 400);
}

}  // namespace
}  // namespace shardmark::strategies
