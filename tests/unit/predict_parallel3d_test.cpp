// 3D layouts: sums by hand, and configurations that were published.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/predict/parallel3d.h"
#include "base/error.h"
#include "specs/specs.h"

namespace shardmark::parallel3d {
namespace {

auto over(const specs::Network& network) {
  return [network](Collective operation, double bytes, Span span) {
    return specs::collective_s(operation, bytes, span, network);
  };
}

Job3d job_of(const Options& given, int64_t global_batch, int64_t micro_batch) {
  Job3d job = job_3d(resolve({"gpt2", given}, specs::model_spec("gpt2").options, "model"));
  job.global_batch = global_batch;
  job.micro_batch = micro_batch;
  job.bytes = specs::element_bytes("bf16", "same");
  job.optimizer_elements = 2;
  job.ranks_per_node = 8;
  job.compute_s = 0.12;
  job.operation_s = over({{0, 1e-11}, {0, 4e-11}});
  return job;
}

const Options kSmall = {{"layers", 4}, {"width", 64}, {"heads", 4}, {"sequence", 32}, {"vocabulary", 100}};

TEST(Parallel3d, OneRankIsTheWholeModel) {
  const Job3d job = job_of(kSmall, 8, 2);
  const Cost3d cost = cost_3d(job, {1, 1, 1});
  EXPECT_EQ(cost.num_micro_batches, 4);
  EXPECT_DOUBLE_EQ(cost.step_s(), 4 * 0.12);
  // bf16 with AdamW: 4 + 2 bytes of weights, 4 + 2 of gradients, 8 of moments
  EXPECT_DOUBLE_EQ(cost.state_bytes, 20.0 * static_cast<double>(job.model.num_parameters()));
  double kept = 0;
  for (const specs::BlockSpec& block : job.model.blocks) kept += block.activation_elements;
  kept -= job.model.blocks.front().activation_elements;  // the first layer's input: counted with the layer
  EXPECT_DOUBLE_EQ(cost.activation_bytes, 2 * 2 * kept);
}

TEST(Parallel3d, TensorGroupsCutALayer) {
  const Job3d job = job_of(kSmall, 2, 2);
  const Cost3d cost = cost_3d(job, {1, 4, 1});
  // Whole on every rank: 6 widths of each layer, positions, the last norm.
  const double whole = 4 * 6 * 64 + 32 * 64 + 2 * 64;
  const double all = static_cast<double>(job.model.num_parameters());
  EXPECT_DOUBLE_EQ(cost.state_bytes, 20 * (whole + (all - whole) / 4));
  EXPECT_DOUBLE_EQ(cost.compute_s, 0.12 / 4);
  // 4 all-reduces a layer, 1 of the embedding, 1 before the output layer: 2 x 32 x 64 values of 2 bytes, of
  // which a ring of 4 ranks sends each 3/2.
  EXPECT_DOUBLE_EQ(cost.tensor_s, (4 * 4 + 2) * 8192 * 1.5 * 1e-11);
  EXPECT_DOUBLE_EQ(cost.activation_bytes, 2 * 64 * (4 * (4 * 64 + (12 * 64 + 4) / 4.0) + 64 + 100 / 4.0));
  EXPECT_EQ(cost.bubble_s + cost.pipeline_s + cost.data_s, 0);
}

TEST(Parallel3d, ABubbleIsOneMicroBatchForEachStageButOne) {
  Job3d job =
      job_of({{"layers", 4}, {"width", 64}, {"heads", 4}, {"sequence", 32}, {"vocabulary", 2}}, 16, 2);
  job.operation_s = over({});
  const Cost3d cost = cost_3d(job, {1, 1, 4});
  // The head of so small a vocabulary is 0.5 % of the FLOPs: stages are alike, and the bubble is
  // (p - 1) / m of the computing (Narayanan et al., SC 2021, section 2.2.1).
  EXPECT_NEAR(cost.compute_s, 8 * 0.12 / 4, 0.01 * cost.compute_s);
  EXPECT_DOUBLE_EQ(cost.bubble_s / cost.compute_s, 3.0 / 8);
}

TEST(Parallel3d, TheFirstStageKeepsAsManyMicroBatchesAsThereAreStages) {
  Job3d job = job_of(kSmall, 16, 2);
  const double layer = 2 * 64 * (16 * 64 + 4);  // bytes of a layer and micro-batch
  EXPECT_DOUBLE_EQ(cost_3d(job, {1, 1, 4}).activation_bytes, 4 * layer);
  job.global_batch = 4;  // there are not more than 2
  EXPECT_DOUBLE_EQ(cost_3d(job, {1, 1, 4}).activation_bytes, 2 * layer);
}

TEST(Parallel3d, ReplicasAndStagesSendByHand) {
  const Job3d job = job_of(kSmall, 32, 2);
  const Cost3d cost = cost_3d(job, {4, 2, 4});  // 32 ranks on 4 nodes: a stage fills a node
  const double boundary = 2 * 32 * 64 * 2;
  EXPECT_DOUBLE_EQ(cost.pipeline_s, 4 * 2 * boundary * 4e-11);
  // Replicas of a stage are in one node; the largest stage is the first one. The embedding's gradient goes
  // across.
  const double embedding = 100 * 64 / 2.0;
  const double first = (12 * 64 * 64 + 7 * 64) / 2.0 + 6 * 64 + embedding + 32 * 64;
  EXPECT_DOUBLE_EQ(cost.data_s, 2 * first * 2 * 0.75 * 1e-11 + 2 * embedding * 4e-11);
  EXPECT_DOUBLE_EQ(cost.step_s(),
                   (cost.compute_s + cost.tensor_s + cost.pipeline_s) * (1 + 3.0 / 4) + cost.data_s);
}

TEST(Parallel3d, RecomputingKeepsInputsAndRunsForwardAgain) {
  Job3d job = job_of({{"layers", 4}, {"width", 64}, {"heads", 4}, {"sequence", 32}, {"vocabulary", 2}}, 2, 2);
  job.recompute = true;
  const Cost3d cost = cost_3d(job, {1, 2, 1});
  EXPECT_DOUBLE_EQ(cost.compute_s, 0.12 / 2);  // as measured, with what is repeated
  EXPECT_DOUBLE_EQ(cost.tensor_s, (4 * 6 + 2) * 8192 * 1e-11);
  EXPECT_DOUBLE_EQ(cost.activation_bytes, 2 * 64 * (4 * 64 + (4 * 64 + (12 * 64 + 4) / 2.0) + 64 + 1));
}

TEST(Parallel3d, GridsUseAllRanksAndCutWhatCanBeCut) {
  const Job3d job = job_of(kSmall, 64, 2);
  const std::vector<Grid> all = grids(job, 32);
  for (const Grid& grid : all) {
    EXPECT_EQ(grid.ranks(), 32);
    EXPECT_EQ(4 % grid.tensor, 0);
    EXPECT_EQ(4 % grid.pipeline, 0);
  }
  EXPECT_EQ(all.size(), 9u);  // t and p: 1, 2 or 4 each
  Job3d odd = job_of(kSmall, 3, 1);
  EXPECT_EQ(grids(odd, 2), (std::vector<Grid>{{1, 1, 2}, {1, 2, 1}}));  // 3 samples are not for 2 replicas
}

TEST(Parallel3d, AnotherModelIsRefused) {
  EXPECT_THROW(job_3d(resolve({"mlp", {}}, specs::model_spec("mlp").options, "model")), UsageError);
}

// What Megatron-LM's weak scaling ran on A100 with 80 GB (Narayanan et al., SC 2021, table 1; its scripts,
// examples/sc21/run_table_1.sh: layers, width, heads, tensor, pipeline, nodes, batch, micro-batch), in fp16
// with every layer recomputed.
struct Megatron {
  double parameters_1e9;
  int64_t layers, width, heads, tensor, pipeline, nodes, batch, micro_batch;
};
const std::vector<Megatron> kMegatron = {
    {1.7, 24, 2304, 24, 1, 1, 4, 512, 16},         {3.6, 30, 3072, 32, 2, 1, 8, 512, 16},
    {7.5, 36, 4096, 32, 4, 1, 16, 512, 16},        {18.4, 40, 6144, 48, 8, 1, 32, 1024, 8},
    {39.1, 48, 8192, 64, 8, 2, 64, 1536, 4},       {76.1, 60, 10240, 80, 8, 4, 128, 1792, 2},
    {145.6, 80, 12288, 96, 8, 8, 192, 2304, 2},    {310.1, 96, 16384, 128, 8, 16, 240, 2160, 1},
    {529.6, 105, 20480, 128, 8, 35, 315, 2520, 1}, {1008.0, 128, 25600, 160, 8, 64, 384, 3072, 1}};

Job3d job_of(const Megatron& run) {
  Job3d job = job_of({{"layers", run.layers},
                      {"width", run.width},
                      {"heads", run.heads},
                      {"sequence", 2048},
                      {"vocabulary", 51200}},
                     run.batch, run.micro_batch);
  job.recompute = true;
  return job;
}

TEST(Parallel3d, PublishedRunsAreAmongTheGridsAndFit) {
  for (const Megatron& run : kMegatron) {
    SCOPED_TRACE(run.parameters_1e9);
    const Job3d job = job_of(run);
    EXPECT_NEAR(static_cast<double>(job.model.num_parameters()) / 1e9, run.parameters_1e9, 0.05);
    const int64_t ranks = 8 * run.nodes;
    const Grid used{ranks / run.tensor / run.pipeline, run.tensor, run.pipeline};
    const auto all = grids(job, ranks);
    EXPECT_NE(std::find(all.begin(), all.end(), used), all.end());
    EXPECT_LT(cost_3d(job, used).bytes(), 80e9);
    EXPECT_GT(cost_3d(job, used).bytes(), 20e9);  // they were to fill the memory
  }
}

TEST(Parallel3d, PublishedRunsWouldNotFitWithLessCut) {
  for (const Megatron& run : kMegatron) {
    if (run.pipeline == 1) continue;
    const int64_t ranks = 8 * run.nodes;
    SCOPED_TRACE(run.parameters_1e9);
    EXPECT_GT(cost_3d(job_of(run), {ranks / 8, 8, 1}).bytes(), 80e9);
  }
}

}  // namespace
}  // namespace shardmark::parallel3d
