// Every layout over NCCL equals one GPU: pipelines with each schedule, tensor and context parallelism, and
// data-parallel strategies combined with them. Two ranks may share a GPU (gpu/emulated_2), which is enough to
// show operations started on the wrong stream or in the wrong order, and memory freed too early. These tests
// have not run on several GPUs yet.
#include "tests/gpu/gpu_fixture.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

const std::string
    kDeep = "gpt2(layers=4, width=24, heads=4, sequence=12, vocabulary=37)",
    kGrouped =
        "llama(layers=2, width=24, heads=4, kv_heads=2, inner=20, sequence=12, vocabulary=37, tied=true)";

class LayoutsOnGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && comm_->size() % 2 != 0) GTEST_SKIP() << "a layout needs two ranks or more";
  }

  void expect_equal(const Layout& layout, double tolerance = 1e-10) {
    const Point point = point_of(layout, comm_->size());
    SCOPED_TRACE(to_text(point));
    Case c{layout.model, layout.optimizer, layout.precision == "fp64" ? at::kDouble : at::kFloat};
    c.accumulation = layout.accumulation;
    c.num_steps = 3;
    c.clip_norm = layout.clip_norm;
    const Outcomes single = train_single(c, *alone_, point.data_ranks());
    const Outcomes run = train_layout(layout, *comm_, c.num_steps);
    EXPECT_LE(largest_relative(run.losses, single.losses), tolerance);
    EXPECT_LE(largest_relative(run.norms, single.norms), tolerance);
    EXPECT_LE(parameter_error(run, single), tolerance);
  }
};

TEST_F(LayoutsOnGpu, PipelinesEqualSingle) {
  for (const std::string& schedule : kSchedules)
    for (const int64_t accumulation : {1, 3, 8})
      expect_equal({.model = kDeep, .pipeline = 2, .schedule = schedule, .accumulation = accumulation});
  for (const std::string& schedule : kSchedules)
    expect_equal({.model = kDeep, .strategy = "fsdp", .pipeline = 2, .schedule = schedule, .clip_norm = 0.1},
                 1e-7);
}

TEST_F(LayoutsOnGpu, TensorAndContextRanksEqualSingle) {
  for (const std::string& model : {kDeep, kGrouped})
    for (const std::string strategy : {"ddp", "fsdp(shard=optimizer)"}) {
      expect_equal({.model = model, .strategy = strategy, .tensor = 2});
      for (const int64_t recompute : {int64_t{0}, kGatheredInputs})
        expect_equal({.model = model,
                      .strategy = strategy,
                      .recompute = recompute,
                      .tensor = 2,
                      .sequence_parallel = true});
      expect_equal({.model = model, .strategy = strategy, .context = 2});
    }
}

// Tokens travel once for each expert, once to each rank, once to each pair of ranks, and as rows that are
// filled up.
TEST_F(LayoutsOnGpu, ExpertsEqualSingle) {
  const std::string model =
      "moe(layers=2, width=24, heads=4, kv_heads=2, inner=20, sequence=12, vocabulary=37, experts=8, "
      "top_k=3";
  for (const std::string strategy : {"ddp", "fsdp"})
    for (const int64_t dispatch : {kDispatchCopies, int64_t{1}}) {
      expect_equal({.model = model + ")", .strategy = strategy, .expert = 2, .dispatch = dispatch});
      expect_equal({.model = model + ", routing=hot(experts=4, share=0.75))",
                    .strategy = strategy,
                    .recompute = 1,
                    .expert = 2,
                    .dispatch = dispatch});
      expect_equal({.model = model + ")",
                    .strategy = strategy,
                    .tensor = 2,
                    .sequence_parallel = true,
                    .expert = 2,
                    .dispatch = dispatch});
    }
  expect_equal({.model = model + ", capacity=1.25)", .expert = 2});
  expect_equal({.model = model + ")", .precision = "fp32", .expert = 2, .dispatch = 1}, 1e-4);
  if (comm_->size() % 4 == 0) expect_equal({.model = model + ")", .expert = 4, .dispatch = 2});
}

TEST_F(LayoutsOnGpu, RecomputationAndFp32) {
  expect_equal({.model = kDeep, .pipeline = 2, .precision = "fp32", .recompute = 1}, 1e-4);
  expect_equal({.model = kDeep, .precision = "fp32", .recompute = 1, .tensor = 2}, 1e-4);
}

// Combines dimensions on four ranks.
TEST_F(LayoutsOnGpu, DimensionsTogether) {
  if (comm_->size() % 4 != 0) GTEST_SKIP() << "two dimensions need four ranks";
  for (const std::string& schedule : kSchedules)
    for (const std::string strategy : {"ddp", "fsdp"}) {
      expect_equal({.model = kDeep, .strategy = strategy, .pipeline = 2, .schedule = schedule});
      expect_equal({.model = kDeep, .strategy = strategy, .pipeline = 2, .schedule = schedule, .tensor = 2});
      expect_equal({.model = kDeep, .strategy = strategy, .pipeline = 2, .schedule = schedule, .context = 2});
    }
}

}  // namespace
}  // namespace shardmark
