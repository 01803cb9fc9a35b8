// Tests the model tables of tensor-parallel and context-parallel ranks, by their sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schema/choice.h"
#include "specs/model_table.h"

namespace shardmark::specs {
namespace {

ModelTable resolved_table(const std::string& text) {
  const Choice model = choice_from_text(text);
  return model_spec(model.name).table(resolve(model, model_spec(model.name).options, "model").options);
}

TEST(Split, RanksHaveTheWholeModelBetweenThem) {
  // Position embeddings, norms, and biases that are added after a reduction are not sharded.
  const std::pair<const char*, int64_t> models[] = {
      {"gpt2(layers=2, heads=12, vocabulary=51200)", 1024 * 768 + (2 * 6 + 2) * 768},
      {"llama(layers=2, vocabulary=4096)", (2 * 2 + 1) * 2048},
      {"mlp(layers=4)", 256 + 10}};
  for (const auto& [model, not_cut] : models) {
    const ModelTable whole = resolved_table(model);
    double flops = 0;
    int64_t cut = 0, uncut = 0;
    for (int64_t rank = 0; rank < 4; ++rank) {
      const ModelTable part = split_table(whole, {.tensor = 4, .tensor_index = rank});
      flops += part.step_flops();
      for (const GroupSpec& group : part.groups)
        for (const ParameterSpec& parameter : group.parameters)
          (parameter.shard ? cut : uncut) += parameter.numel();
    }
    EXPECT_NEAR(flops, whole.step_flops(), 1e-9 * flops) << model;
    EXPECT_EQ(cut + uncut / 4, whole.num_parameters()) << model;
    EXPECT_EQ(uncut, 4 * not_cut) << model;
  }
}

// Long parts of words are whole tiles of 64. Short ones would be mostly padding.
TEST(Split, WordsAreCutIntoWholeTiles) {
  for (const auto& [words, ranks, each] : {std::tuple(50257, 2, 25152),
                                           {50257, 8, 6336},
                                           {128256, 8, 16064},
                                           {4096, 4, 1024},
                                           {2050, 2, 1088},
                                           {2046, 2, 1023},
                                           {37, 2, 19},
                                           {65536, 48, 1366}}) {
    const ModelTable whole = resolved_table("gpt2(vocabulary=" + std::to_string(words) + ")");
    const ModelTable last = split_table(whole, {.tensor = ranks, .tensor_index = ranks - 1});
    const ParameterSpec& parameter = last.groups.front().parameters.front();
    EXPECT_EQ(parameter.shape.front(), each) << words << " words";
    EXPECT_EQ(parameter.whole_shape().front(), words);
  }
}

// The dimension of a process group is the one in which its ranks differ, even if groups of two dimensions
// have the same ranks.
TEST(MeshOfRanks, KnowsWhatAProcessGroupConsistsOf) {
  const Mesh both{.data = 2, .tensor = 2, .context = 4};
  EXPECT_EQ(both.dimension_of(both.copies()), Dimension::data);
  EXPECT_EQ(both.dimension_of(both.context_group()), Dimension::context);
  EXPECT_EQ(both.dimension_of(both.tensor_group()), Dimension::tensor);
  EXPECT_EQ(both.dimension_of({2, 2}), Dimension::context) << "a group of fsdp within a sequence";
  EXPECT_EQ(both.dimension_of({1, 2}), Dimension::data);
  const Mesh one_copy{.pipeline = 2, .tensor = 2, .context = 2};
  EXPECT_EQ(one_copy.dimension_of(one_copy.copies()), Dimension::context) << "all copies share a sequence";
  EXPECT_EQ(one_copy.dimension_of(one_copy.pipeline_group()), Dimension::pipeline);
  const Mesh copies{.data = 4, .pipeline = 2, .pipeline_inside = true};
  EXPECT_EQ(copies.dimension_of(copies.copies()), Dimension::data);
  EXPECT_EQ(copies.dimension_of(copies.pipeline_group()), Dimension::pipeline);
  EXPECT_EQ(copies.dimension_of({2, 2}), Dimension::data) << "a group of fsdp";
}

// Tokens of 16 ranks, on nodes of 4: 8 experts of 64 for each of 4,096 tokens. Rows are as many as different
// ranks, and before them as many as different nodes.
TEST(Split, OfTokensThatTravelOnceHasTheRowsOfRanksAndNodes) {
  const auto calls_of = [](int64_t dispatch, const std::string& routing) {
    const ModelTable whole =
        resolved_table("moe(layers=1, sequence=4096, experts=64, top_k=8, routing=" + routing + ")");
    const ModelTable part = split_table(whole, {.expert = 16, .dispatch = dispatch});
    for (const BlockSpec& block : part.blocks)
      if (block.expert_tokens) return std::pair(block.forward_calls, block.backward_calls);
    return std::pair(std::vector<BlockCall>(), std::vector<BlockCall>());
  };
  const auto rows = [](const BlockCall& call) { return call.numel_per_sample / call.row; };
  constexpr int64_t kWidth = 512;
  const auto [copies, copies_back] = calls_of(0, "learned");
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(rows(copies[1]), 8 * 4096);
  EXPECT_EQ(copies[0].numel, 16 * 64);

  const auto [ranks, ranks_back] = calls_of(1, "learned");
  ASSERT_EQ(ranks.size(), 3u);
  // A rank with 4 of 64 experts is missed by 8 different ones with probability C(60, 8) / C(64, 8).
  const double missed = 60. / 64 * 59 / 63 * 58 / 62 * 57 / 61 * 56 / 60 * 55 / 59 * 54 / 58 * 53 / 57;
  EXPECT_NEAR(static_cast<double>(rows(ranks[1])), 4096 * 16 * (1 - missed), 1);
  EXPECT_EQ(ranks[0].numel, 16 * 16);
  EXPECT_EQ(ranks[1].row, kWidth + 4) << "a weight for each of the receiver's experts";
  EXPECT_EQ(ranks[2].row, kWidth);
  EXPECT_EQ(ranks_back[0].row, kWidth);
  EXPECT_EQ(ranks_back[1].row, kWidth + 4);

  const auto [nodes, nodes_back] = calls_of(4, "learned");
  ASSERT_EQ(nodes.size(), 6u);
  EXPECT_EQ(nodes[0].among, (ProcessGroup{4, 4})) << "one rank of each node";
  EXPECT_EQ(nodes[1].row, kWidth + 16);
  EXPECT_NEAR(static_cast<double>(rows(nodes[1])) / 4096, 3.7, 0.1) << "of 4 nodes";
  EXPECT_EQ(nodes[2].among, (ProcessGroup{4, 1})) << "those of a node";
  EXPECT_EQ(rows(nodes[3]), rows(ranks[1]));
  EXPECT_EQ(nodes[4].among, (ProcessGroup{4, 1})) << "back in reverse";
  EXPECT_EQ(nodes[5].among, (ProcessGroup{4, 4}));
  ASSERT_EQ(nodes_back.size(), 4u);
  EXPECT_EQ(nodes_back[0].row, kWidth);
  EXPECT_EQ(nodes_back[3].row, kWidth + 16);

  // Half of the copies go to one rank, whose 4 experts get all tokens: one row of each token.
  const auto [hot, hot_back] = calls_of(1, "hot(experts=4, share=0.5)");
  EXPECT_LT(rows(hot[1]), 5 * 4096);
  EXPECT_GT(rows(hot[1]), 4 * 4096);
}

TEST(Split, IsTheTableItselfOnOneRank) {
  const ModelTable whole = resolved_table("gpt2(layers=1)"), same = split_table(whole, {});
  EXPECT_EQ(same.num_parameters(), whole.num_parameters());
  for (const BlockSpec& block : same.blocks) EXPECT_TRUE(block.forward_calls.empty()) << block.name;
}

TEST(Split, LayersMakeTheCallsOfTheirPapers) {
  const ModelTable whole = resolved_table("gpt2(layers=1, width=8, heads=2, sequence=6)");
  const BlockSpec tensor = split_table(whole, {.tensor = 2}).blocks[1];
  ASSERT_EQ(tensor.forward_calls.size(), 2U);  // after attention and after the MLP
  EXPECT_EQ(tensor.forward_calls[0].what, Collective::all_reduce);
  EXPECT_EQ(tensor.forward_calls[0].numel_per_sample, 6 * 8);
  EXPECT_EQ(tensor.backward_calls.size(), 2U);
  const BlockSpec tokens = split_table(whole, {.tensor = 2, .sequence_parallel = true}).blocks[1];
  ASSERT_EQ(tokens.forward_calls.size(), 4U);
  EXPECT_EQ(tokens.forward_calls[0].what, Collective::all_gather);
  EXPECT_EQ(tokens.forward_calls[1].what, Collective::reduce_scatter);
  EXPECT_EQ(tokens.output_shape, (std::vector<int64_t>{3, 8}));
  EXPECT_LT(tokens.activation_elements, tensor.activation_elements);
  const BlockSpec context = split_table(whole, {.context = 3}).blocks[1];
  ASSERT_EQ(context.forward_calls.size(), 1U);
  EXPECT_EQ(context.forward_calls[0].numel_per_sample, 2 * 6 * 8);
  EXPECT_EQ(context.output_shape, (std::vector<int64_t>{2, 8}));
}

TEST(Split, SaysWhatCannotBeAndWhatWorks) {
  const auto reason = [](const char* model, const Split& split) {
    return split_impossible(choice_from_text(model).name, resolved_table(model), split);
  };
  EXPECT_EQ(reason("gpt2", {.tensor = 4}), "");
  EXPECT_EQ(
      reason("gpt2", {.tensor = 5}),
      "tensor 5 does not cut the 12 heads of gpt2 evenly; of up to 64 ranks these do: 1, 2, 3, 4, 6, 12");
  EXPECT_EQ(reason("gpt2(sequence=12)", {.context = 4}),
            "a sequence of 12 tokens is not a multiple of 2 x context 4: each rank takes two parts");
  EXPECT_EQ(reason("gpt2(sequence=6)", {.tensor = 4, .sequence_parallel = true}),
            "6 tokens of a sequence are not a multiple of tensor 4, as sequence_parallel needs");
  EXPECT_EQ(reason("mlp", {.sequence_parallel = true}),
            "sequence_parallel cuts tokens over the ranks of tensor; take tensor 2 or more");
  EXPECT_EQ(reason("mlp", {.tensor = 2, .sequence_parallel = true}),
            "sequence_parallel needs a model of sequences; mlp has none");
  EXPECT_EQ(reason("resnet", {.tensor = 2}),
            "the blocks of resnet are not cut over tensor ranks; those of gpt2, llama, moe and mlp are");
  EXPECT_EQ(reason("moe", {.context = 2}), "");
  EXPECT_EQ(reason("moe", {.tensor = 4, .sequence_parallel = true}), "");
  EXPECT_EQ(reason("moe", {.tensor = 2, .expert = 2}),
            "tensor ranks share whole experts if each has tokens of its own; take sequence_parallel and an "
            "expert that is a multiple of tensor 2, or expert 1, which cuts each expert over tensor ranks");
  EXPECT_EQ(reason("moe", {.tensor = 2, .sequence_parallel = true, .expert = 2}), "");
  EXPECT_EQ(reason("llama", {.tensor = 2, .expert = 2}),
            "llama has no experts that ranks could share; take moe or moe_8x7b");
  EXPECT_EQ(reason("moe(aux_loss=0.1)", {.tensor = 3}),
            "every tensor rank would add the aux_loss of all tokens; take aux_loss 0, or tensor 1");
  EXPECT_EQ(reason("mlp", {.context = 2}),
            "samples of mlp are not cut over context ranks; those of gpt2, llama and moe are");
}

}  // namespace
}  // namespace shardmark::specs
