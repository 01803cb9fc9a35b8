// The measured and the predicted memory of a training point are both those of the rank with the highest peak.
// RANKS 2 4
#include "device/meter.h"
#include "sweep/measure.h"
#include "sweep/workloads/training_results.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

class MemoryOfOneRank : public OnCpuRanks {
 protected:
  void SetUp() override { meter::install(); }
  Record measure(const Layout& layout, int64_t batch_size = 2) {
    Point point = point_of(layout, comm->size());
    point.training.batch_size = batch_size;
    point.sampling.warmup_steps = point.sampling.min_steps = point.sampling.max_steps = 1;
    const Resources resources;
    HeartbeatPage page{};
    Heartbeat heartbeat{page};
    Record record = measure_point({point, world, *comm, resources, references_, heartbeat});
    EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
    return record;
  }

 private:
  ReferenceCache references_;  // the strategies of a model share theirs
};

// The stages of this model differ: the first has the embedding, the last has the head.
TEST_F(MemoryOfOneRank, AgreesInPipelines) {
  Layout layout{
      "llama(layers=4, width=32, heads=2, kv_heads=2, inner=48, sequence=8, vocabulary=4096, tied=false)"};
  layout.pipeline = 2;
  layout.precision = "fp32";
  for (const char* stages : {"flops", "blocks"})
    for (const char* strategy : {"ddp", "fsdp"}) {
      layout.stages = stages;
      layout.strategy = strategy;
      const Record record = measure(layout);
      if (world.rank() != 0) continue;
      SCOPED_TRACE(to_text(record.point));
      const Measures& m = record.measures;
      const int64_t rank = fullest_rank(record);
      EXPECT_DOUBLE_EQ(record.series("peak")->at(rank, 0), m.peak_bytes);
      EXPECT_NEAR(m.parameter_bytes / m.predicted_parameter_bytes, 1, 0.01);
      EXPECT_NEAR(m.gradient_bytes / m.predicted_gradient_bytes, 1, 0.01);
      EXPECT_NEAR(m.optimizer_bytes / m.predicted_optimizer_bytes, 1, 0.01);
    }
}

// Memory that is not part of the step does not count as activations: samples that are drawn from, and buffers
// of the transport.
TEST_F(MemoryOfOneRank, ActivationsOfSmallModelsAreWithinATenth) {
  struct Case {
    const char* model;
    int64_t batch_size, tensor = 1;
  };
  const char* const small_llama =
      "llama(layers=4, width=128, heads=4, kv_heads=4, inner=384, sequence=128, vocabulary=512, tied=false)";
  for (const Case& one : {Case{"mlp(layers=4)", 64},
                          {"mlp(layers=6, width=512)", 16},
                          {"mlp(features=16, width=64, layers=2)", 4},
                          {"mlp(features=16, width=64, layers=2)", 16},
                          {"mlp(features=16, width=64, layers=2)", 1024},
                          {small_llama, 1},
                          {small_llama, 1, 2},
                          {"gpt2(layers=4, width=256, heads=4, sequence=128, vocabulary=256)", 1},
                          {"llama(layers=2, width=64, heads=4, kv_heads=4, inner=192, sequence=128, "
                           "vocabulary=16384)",
                           2, 2}})
    for (const char* strategy : {"ddp", "fsdp", "fsdp(shard=optimizer)", "zero3"}) {
      Layout layout{one.model, strategy};
      layout.tensor = one.tensor;
      layout.precision = "fp32";
      layout.accumulation = 2;  // the second micro-batch finds gradients of the first in memory
      const Record record = measure(layout, one.batch_size);
      if (world.rank() != 0) continue;
      const Measures& m = record.measures;
      EXPECT_NEAR(m.activation_bytes() / m.predicted_activation_bytes, 1, 0.1) << to_text(record.point);
    }
}

TEST(FullestRank, IsTheFirstWithTheHighestPeak) {
  Record record;
  EXPECT_EQ(fullest_rank(record), 0);
  record.samples.push_back({"peak", 4, 1, {3, 7, 5, 7}});
  EXPECT_EQ(fullest_rank(record), 1);
}

}  // namespace
}  // namespace shardmark
