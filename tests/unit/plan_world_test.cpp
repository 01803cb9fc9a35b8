// Tests how a suite becomes the plan of a world: reasons why points are impossible, batches of strong
// scaling, repeats, the order of points, and expected costs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/plan.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

std::vector<Point> plan_of(const std::string& text, const World& world) {
  return make_plan(parse_suite(text, "s.yaml"), world);
}

std::string reason(const std::string& text, const World& world) {
  return plan_of(text, world).at(0).impossible;
}

TEST(Plan, NoRanksMeansTheWorld) {
  EXPECT_EQ(plan_of("training: {model: mlp, strategy: ddp, batch_size: 1}", {6, 0}).at(0).ranks, 6);
}

TEST(Plan, SaysWhatTheLibrarysCollectivesCannotDo) {
  using specs::MpiServes;
  const auto over_mpi = [](const std::string& what, MpiServes serves) {
    const World world{.ranks = 2, .transport = "mpi", .mpi = serves};
    return reason(what, world);
  };
  const std::string floats = "collectives: {operation: all_reduce, bytes: 8",
                    halves = floats + ", dtype: float16}",
                    training = "training: {model: mlp, strategy: ddp, batch_size: 1}",
                    overlapping = floats + ", beside: copy}",
                    moved =
                        "collectives: {operation: all_gather, "
                        "bytes: 8, dtype: float16}";
  for (const std::string& what : {floats + "}", halves, training, overlapping, moved}) {
    EXPECT_EQ(over_mpi(what, MpiServes::everything), "");
    EXPECT_THAT(over_mpi(what, MpiServes::nothing), ::testing::HasSubstr("does not take GPU memory"));
  }
  EXPECT_EQ(over_mpi(floats + "}", MpiServes::blocking), "");
  EXPECT_EQ(over_mpi(moved, MpiServes::blocking), "");
  EXPECT_THAT(over_mpi(halves, MpiServes::blocking), ::testing::HasSubstr("does not reduce 16-bit types"));
  for (const std::string& what : {training, overlapping})
    EXPECT_THAT(over_mpi(what, MpiServes::blocking), ::testing::HasSubstr("overlaps nothing on GPUs"));
  EXPECT_THAT(over_mpi(floats + "GiB}", MpiServes::everything), ::testing::HasSubstr("32 bits"));
  EXPECT_EQ(reason("{transport: pt2pt, " + floats + "GiB}}", {.ranks = 2, .transport = "mpi"}), "");
}

TEST(Plan, SaysWhereFusedKernelsCannotRun) {
  const auto fused = [](const char* model, const char* precision, bool on_cpu) {
    World world{1, 0};
    world.on_cpu = on_cpu;
    return reason(fmt::format("training: {{model: {}, strategy: single, batch_size: 1, kernels: fused, "
                              "precision: {}}}",
                              model, precision),
                  world);
  };
  EXPECT_EQ(fused("gpt2", "bf16", false), "");
  EXPECT_EQ(fused("gpt2", "bf16", true),
            "fused kernels are a GPU's, and these ranks compute on the CPU; take kernels torch");
  EXPECT_EQ(fused("gpt2", "fp32", false), "fused kernels compute in bf16, not in fp32; take kernels torch");
  EXPECT_EQ(fused("resnet", "bf16", false), "");
  for (const char* model : {"{resnet: {batch_norm: sync}}", "{resnet: {batch_norm: frozen}}", "mlp"})
    EXPECT_THAT(fused(model, "bf16", false), ::testing::HasSubstr("of resnet with batch_norm local, and "))
        << model;
}

TEST(Plan, SaysWhereProductsCannotBeFp8) {
  const auto fp8 = [](const char* model, const char* precision) {
    return reason(fmt::format("training: {{model: {}, strategy: single, batch_size: 1, products: fp8, "
                              "precision: {}}}",
                              model, precision),
                  {1, 0});
  };
  for (const char* model : {"gpt2", "llama", "moe"}) EXPECT_EQ(fp8(model, "fp32"), "") << model;
  EXPECT_EQ(fp8("gpt2", "fp64"), "");
  EXPECT_EQ(fp8("gpt2", "fp16"),
            "fp8 products are computed beside bf16, or fp32 and fp64, and not fp16; take bf16");
  EXPECT_EQ(fp8("resnet", "bf16"),
            "fp8 products are those of transformer blocks, and resnet has none; take products compute");
}

TEST(Plan, SaysWhereStepsCannotBeGraphs) {
  const auto graph = [](const char* model, const char* strategy, bool on_cpu) {
    World world{2, 0};
    world.on_cpu = on_cpu;
    return reason(
        fmt::format("training: {{model: {}, strategy: {}, batch_size: 1, graph: true}}", model, strategy),
        world);
  };
  EXPECT_EQ(graph("gpt2", "single", false), "");
  EXPECT_EQ(graph("gpt2", "single", true),
            "CUDA graphs are a GPU's, and these ranks compute on the CPU; take graph false");
  EXPECT_EQ(graph("{gpt2: {dropout: 0.1}}", "single", false),
            "a graph would drop the same elements in every step; take dropout 0, or graph false");
  EXPECT_EQ(graph("moe", "single", false),
            "a mixture's tokens may be counted by the host, for which graphs do not wait; take graph false");
  EXPECT_EQ(graph("gpt2", "ddp", false),
            "ddp communicates in a step, which graphs do not hold; take single, or graph false");
  EXPECT_EQ(graph("gpt2", "auto", false),
            "auto communicates in a step, which graphs do not hold; take single, or graph false");
}

TEST(Plan, RefusesGathersOfTheirOwnWhereNothingIsGathered) {
  const auto own = [](const char* strategy, int64_t ranks) {
    return reason(
        fmt::format("training: {{model: mlp, strategy: {}, batch_size: 1, gathers: own}}", strategy),
        {ranks, 0});
  };
  for (const char* strategy : {"fsdp", "{fsdp: {shard: optimizer}}", "zero3"})
    EXPECT_EQ(own(strategy, 2), "");
  EXPECT_EQ(own("ddp", 2),
            "gathers own changes nothing here: ddp on 2 ranks gathers no parameters; take a strategy that "
            "does, on several ranks, or leave gathers at shared");
  EXPECT_EQ(own("zero3", 1),
            "gathers own changes nothing here: zero3 on 1 rank gathers no parameters; take a strategy that "
            "does, on several ranks, or leave gathers at shared");
  EXPECT_EQ(own("auto", 2), "auto may choose a strategy that gathers nothing; take gathers shared");
}

TEST(Plan, SaysWhyAPointCannotRun) {
  EXPECT_EQ(reason("{ranks: 8, training: {model: mlp, strategy: ddp, batch_size: 1}}", {4, 0}),
            "needs 8 ranks, the world has 4");
  EXPECT_EQ(reason("{ranks: 4, training: {model: mlp, strategy: ddp, global_batch: 6}}", {4, 0}),
            "global batch 6 is not divisible by 4 ranks");
  EXPECT_EQ(
      reason("{ranks: 1, training: {model: mlp, strategy: ddp, global_batch: 6, accumulation: 4}}", {4, 0}),
      "global batch 6 is not divisible by 1 rank x 4 micro-batches");
  EXPECT_EQ(reason("training: {model: mlp, data: cifar10, strategy: ddp, batch_size: 1}", {1, 0}),
            "data cifar10: the model takes no images of 3 x 32 x 32");
  EXPECT_EQ(reason("training: {model: {gpt2: {vocabulary: 100}}, data: {text: {files: x}}, strategy: ddp, "
                   "batch_size: 1}",
                   {1, 0}),
            "data text: a byte needs a vocabulary of 256, the model's is 100");
  EXPECT_EQ(reason("training: {model: gpt2, strategy: ddp, batch_size: 1}", {1, 1 << 30}),
            "the state of a rank needs 1.39 GiB, a rank has 1.00 GiB");
  EXPECT_EQ(reason("training: {model: gpt2, strategy: ddp, batch_size: 1}", {4, 1 << 30}),
            "the state of a rank needs 1.39 GiB, a rank has 1.00 GiB; tensor 4 would fit (723 MiB with "
            "activations)");
  // Ranks that share experts need no more ranks per copy of the model, so they come first.
  EXPECT_EQ(reason("training: {model: moe, strategy: ddp, batch_size: 1}", {4, int64_t{1400} << 20}),
            "the state of a rank needs 1.80 GiB, a rank has 1.37 GiB; expert 4 would fit (1.32 GiB with "
            "activations)");
  // With tensor 4 there is one copy of the model, which has the whole global batch.
  EXPECT_EQ(reason("training: {model: gpt2, strategy: ddp, global_batch: 4}", {4, 1 << 30}),
            "the state of a rank needs 1.39 GiB, a rank has 1.00 GiB");
  EXPECT_EQ(
      reason("training: {model: mlp, strategy: {ddp: {reduction: int8}}, precision: fp64, batch_size: 1}",
             {2, 0}),
      "reduction int8 takes gradients of at most 4 bytes an element, the precision has 8; take fp32 or "
      "another "
      "reduction");
  EXPECT_EQ(
      reason("training: {model: mlp, strategy: {ddp: {reduction: topk}}, precision: fp16, batch_size: 1}",
             {2, 0}),
      "reduction topk keeps a part of the gradient, which the changing loss scale of fp16 would make wrong; "
      "take "
      "bf16 or another reduction");
  EXPECT_EQ(
      reason("training: {model: mlp, strategy: {ddp: {reduction: topk}}, tensor: 2, batch_size: 1}", {4, 0}),
      "reduction topk would let the parameters that all tensor-parallel ranks have drift apart; take "
      "sequence_parallel, which adds up their gradients, or another reduction");
  const std::string in_nodes_of_two =
      "transport: {hierarchical: {ranks_per_node: 2, form: [sharded, leader]}}, "
      "training: {model: mlp, strategy: ddp, batch_size: 1}}";
  EXPECT_EQ(reason("{ranks: [3], " + in_nodes_of_two, {4, 0}),
            "form sharded of a hierarchical all-reduce needs full nodes: 3 ranks, 2 per node");
  EXPECT_EQ(plan_of("{ranks: [3], " + in_nodes_of_two, {4, 0}).at(1).impossible, "");
  EXPECT_EQ(reason("{ranks: [4], " + in_nodes_of_two, {4, 0}), "");
  EXPECT_EQ(
      reason("{ranks: 6, transport: hierarchical, training: {model: mlp, strategy: ddp, batch_size: 1}}",
             {8, 0, 4}),
      "form sharded of a hierarchical all-reduce needs full nodes: 6 ranks, 4 per node");
  EXPECT_EQ(reason("collectives: {operation: all_gather, bytes: 8}", {4, 0}),
            "8 B hold 2 float32, all_gather on 4 ranks needs 4");
  EXPECT_EQ(reason("collectives: {operation: broadcast, bytes: 4, dtype: float64}", {4, 0}),
            "4 B hold 0 float64, broadcast on 4 ranks needs 1");
  EXPECT_EQ(
      reason("collectives: {operation: all_reduce, bytes: 8, dtype: int32, reduction: average}", {4, 0}),
      "the average of int32 values is not an int32");
  EXPECT_EQ(reason("collectives: {operation: all_gather, bytes: 16}", {4, 0}), "");
}

TEST(Plan, StrongScalingDividesTheGlobalBatch) {
  const auto plan = plan_of(
      "{ranks: [1, 2, 4], training: {model: mlp, strategy: ddp, global_batch: 16, accumulation: [1, 2]}}",
      {4, 0});
  std::vector<int64_t> batches;
  for (const auto& point : plan) {
    batches.push_back(point.training.batch_size);
    EXPECT_EQ(point.global_batch(), 16);
  }
  EXPECT_EQ(batches, (std::vector<int64_t>{16, 8, 4, 8, 4, 2}));
}

TEST(Plan, WhatIsAskedTwiceIsMeasuredOnce) {
  const std::string block = "{model: mlp, strategy: ddp, batch_size: [1, 1]}";
  EXPECT_EQ(plan_of("training: [" + block + ", " + block +
                        ", {model: mlp, strategy: ddp, batch_size: 1, ranks: 2}]",
                    {2, 0})
                .size(),
            1u);
  // The step is the same whether the suite gave the batch of a rank or of all ranks.
  const auto both = plan_of(
      "{ranks: [1, 2], training: [{model: mlp, strategy: ddp, batch_size: 4}, "
      "{model: mlp, strategy: ddp, global_batch: 8}]}",
      {2, 0});
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(both[1].training.scaling, "weak");  // on 2 ranks, from the first block
  EXPECT_EQ(both[2].ranks, 1);
  EXPECT_EQ(both[2].training.scaling, "strong");
}

TEST(Plan, RepeatsAreInterleavedAndDiffer) {
  const auto plan =
      plan_of("{repeats: 3, training: {model: mlp, strategy: [ddp, zero3], batch_size: 1}}", {1, 0});
  ASSERT_EQ(plan.size(), 6u);
  std::set<std::string> ids;
  for (size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(plan[i].repeat, static_cast<int64_t>(i / 2));
    ids.insert(point_id(plan[i]));
  }
  EXPECT_EQ(ids.size(), 6u);
}

TEST(RunOrder, ShufflesWithinEachRepetition) {
  Suite suite = parse_suite(
      "{repeats: 2, seed: 5, ranks: [1, 2, 3, 4, 5, 6, 7, 8], training: {model: mlp, strategy: ddp, "
      "batch_size: 1}}",
      "s.yaml");
  const auto plan = make_plan(suite, {8, 0});
  const auto order = run_order(suite, plan);
  ASSERT_EQ(order.size(), 16u);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(plan[order[i]].repeat, static_cast<int64_t>(i / 8));
  EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 16u);
  EXPECT_EQ(order, run_order(suite, plan));
  // This order must never change, so that a study has the same order on every machine, also when it is
  // resumed or repeated.
  const std::vector<size_t> first(order.begin(), order.begin() + 8);
  EXPECT_EQ(first, (std::vector<size_t>{4, 1, 7, 0, 3, 2, 5, 6}));

  suite.seed = 6;
  EXPECT_NE(order, run_order(suite, plan));
  suite.shuffle = false;
  const auto plain = run_order(suite, plan);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
}

TEST(RunOrder, EveryPositionIsEquallyLikely) {
  Suite suite =
      parse_suite("{ranks: [1, 2, 3], training: {model: mlp, strategy: ddp, batch_size: 1}}", "s.yaml");
  const auto plan = make_plan(suite, {3, 0});
  std::map<std::vector<size_t>, int> counts;
  for (suite.seed = 0; suite.seed < 6000; ++suite.seed) ++counts[run_order(suite, plan)];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);  // 150 is 5 standard deviations
}

TEST(RunOrder, OfNothingIsNothing) { EXPECT_TRUE(run_order({}, {}).empty()); }

TEST(Expect, FollowsTheFormulas) {
  const auto points = plan_of(
      "{ranks: 2, training: {model: mlp, strategy: [single, ddp], optimizer: adamw, batch_size: 3, "
      "accumulation: 2}}",
      {2, 0});
  const Expectation single = expect(points[0]), ddp = expect(points[1]);
  const auto table = specs::model_spec("mlp").table(points[0].training.model.options);
  EXPECT_EQ(ddp.num_parameters, table.num_parameters());
  EXPECT_EQ(ddp.cost.optimizer_bytes, 2 * ddp.cost.parameter_bytes);
  EXPECT_EQ(single.cost.traffic_bytes, 0);
  EXPECT_EQ(ddp.cost.traffic_bytes, ddp.cost.gradient_bytes);  // 2 (N-1)/N M with N = 2
  EXPECT_EQ(ddp.flops_per_step, 6 * table.step_flops());
  EXPECT_GT(ddp.activation_bytes, 0);
}

TEST(Expect, CollectivesHaveTheirRingFactor) {
  const auto points = plan_of(
      "{ranks: 4, collectives: {operation: [all_reduce, all_gather, send_recv], bytes: 1000}}", {4, 0});
  EXPECT_EQ(expect(points[0]).cost.traffic_bytes, 1500);
  EXPECT_EQ(expect(points[1]).cost.traffic_bytes, 750);
  EXPECT_EQ(expect(points[2]).cost.traffic_bytes, 1000);
}

}  // namespace
}  // namespace shardmark
