// Tests the tables of the models: published sizes, errors for invalid options, and the order that strategies
// rely on.
#include <gmock/gmock.h>

#include <set>

#include "specs/model_table.h"

namespace shardmark::specs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ModelTable table_of(const std::string& name, const Options& given = {}) {
  const ModelSpec& law = model_spec(name);
  return law.table(resolve({name, given}, law.options, "model").options);
}

TEST(ModelTables, HaveThePublishedParameterCounts) {
  // These are the values of from_pretrained(...).num_parameters() in Hugging Face's library.
  EXPECT_EQ(table_of("gpt2").num_parameters(), 124'439'808);
  EXPECT_EQ(table_of("gpt2_medium").num_parameters(), 354'823'168);
  EXPECT_EQ(table_of("gpt2_large").num_parameters(), 774'030'080);
  EXPECT_EQ(table_of("gpt2_xl").num_parameters(), 1'557'611'200);
  EXPECT_EQ(table_of("llama_1b").num_parameters(), 1'235'814'400);  // Hugging Face, meta-llama/Llama-3.x-*
  EXPECT_EQ(table_of("llama_3b").num_parameters(), 3'212'749'824);
  EXPECT_EQ(table_of("llama_8b").num_parameters(), 8'030'261'248);
  EXPECT_EQ(table_of("llama_70b").num_parameters(), 70'553'706'496);
  EXPECT_EQ(table_of("moe_8x7b").num_parameters(), 46'702'792'704);  // mistralai/Mixtral-8x7B-v0.1
  EXPECT_EQ(table_of("moe_8x7b").num_active_parameters(), 46'702'792'704 - 32L * 6 * 3 * 4096 * 14336);
  EXPECT_EQ(table_of("resnet", {{"layers", 50}}).num_parameters(), 25'557'032);  // torchvision
  EXPECT_EQ(table_of("resnet", {{"layers", 18}, {"image", 224}, {"classes", 1000}}).num_parameters(),
            11'689'512);
  EXPECT_EQ(table_of("resnet", {{"layers", 34}, {"image", 224}, {"classes", 1000}}).num_parameters(),
            21'797'672);
  EXPECT_EQ(table_of("resnet", {{"layers", 18}}).num_parameters(), 11'173'962);  // the form for CIFAR images
  EXPECT_EQ(table_of("resnet", {{"layers", 34}}).num_parameters(), 21'282'122);
  // He et al. 2015, table 6, list 0.27, 0.46, 0.85 and 1.7 million parameters with shortcuts of type A. Our
  // models have two projections with their norms in addition.
  const int64_t projections = 16 * 32 + 32 * 64 + 2 * (32 + 64);
  EXPECT_EQ(table_of("resnet", {{"layers", 20}}).num_parameters(), 269'722 + projections);
  EXPECT_EQ(table_of("resnet", {{"layers", 32}}).num_parameters(), 464'154 + projections);
  EXPECT_EQ(table_of("resnet", {{"layers", 56}}).num_parameters(), 853'018 + projections);
  EXPECT_EQ(table_of("resnet", {{"layers", 110}}).num_parameters(), 1'727'962 + projections);
  EXPECT_EQ(table_of("mlp", {{"features", 3}, {"width", 5}, {"layers", 3}, {"classes", 2}}).num_parameters(),
            3 * 5 + 5 + 5 * 5 + 5 + 5 * 2 + 2);
}

TEST(ModelTables, HaveThePublishedArithmetic) {
  // torchvision publishes multiply-adds of the convolutions and the classifier as GFLOPS: 4.09 for ResNet-50
  // and 1.81 for ResNet-18.
  EXPECT_NEAR(table_of("resnet", {{"layers", 50}}).step_flops() / 3 / 2, 4.09e9, 0.005e9);
  EXPECT_NEAR(table_of("resnet", {{"layers", 18}, {"image", 224}, {"classes", 1000}}).step_flops() / 3 / 2,
              1.81e9, 0.005e9);
  // PaLM counts 6 N + 12 L C T FLOPs per token. N excludes the position embedding, biases and norms.
  const double n = 12.0 * 12 * 768 * 768 + 50257.0 * 768;
  EXPECT_DOUBLE_EQ(table_of("gpt2").step_flops(), 1024 * (6 * n + 12.0 * 12 * 768 * 1024));
  // All parameters except the token embedding and the 65 norms are used in matrix products.
  const double n_8b = 8'030'261'248 - 128'256.0 * 4096 - 65.0 * 4096;
  EXPECT_DOUBLE_EQ(table_of("llama_8b").step_flops(), 8192 * (6 * n_8b + 12.0 * 32 * 4096 * 8192));
}

// Strategies rely on these properties.
TEST(ModelTables, AreWellFormed) {
  for (const auto& [name, law] : Registry<ModelSpec>::instance().entries()) {
    const ModelTable table = table_of(name);
    const auto last = static_cast<int64_t>(table.blocks.size()) - 1;
    std::set<std::string> names;
    std::vector<int> groups_of_block(table.blocks.size());
    int64_t previous = 0;
    for (const auto& group : table.groups) {
      EXPECT_LE(previous, group.first_block) << name << ": groups are ordered by first use";
      EXPECT_LE(group.first_block, group.last_block);
      EXPECT_LE(group.last_block, last);
      previous = group.first_block;
      if (group.first_block == group.last_block) ++groups_of_block[static_cast<size_t>(group.first_block)];
      for (const auto& parameter : group.parameters) {
        EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name << " twice";
        EXPECT_GT(parameter.numel(), 0) << parameter.name;
      }
    }
    EXPECT_THAT(groups_of_block, ::testing::Each(1)) << name << ": every block has one group of its own";
    for (const auto& buffer : table.buffers)
      EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name << " twice";
    EXPECT_FALSE(table.flops_formula.empty());
    EXPECT_GT(table.sample.num_classes, 1);
  }
}

TEST(ModelTables, RefuseOptionsThatContradictEachOther) {
  EXPECT_THAT(
      [] {
        table_of("gpt2", {{"width", 100}, {"heads", 3}});
      },
      ThrowsMessage<UsageError>(HasSubstr("width 100 is not a multiple of heads 3")));
  const auto refused = [](const Options& options) { return [=] { table_of("llama", options); }; };
  EXPECT_THAT(refused({{"width", 100}, {"heads", 3}}),
              ThrowsMessage<UsageError>(HasSubstr("width 100 is not a multiple of heads 3")));
  EXPECT_THAT(refused({{"width", 96}, {"heads", 12}}),
              ThrowsMessage<UsageError>(HasSubstr("heads 12 is not a multiple of kv_heads 8")));
  EXPECT_THAT(refused({{"width", 72}, {"heads", 8}}),
              ThrowsMessage<UsageError>(HasSubstr("width 72 / heads 8 = 9 is odd")));
  EXPECT_THAT(
      [] {
        table_of("moe", {{"experts", 4}, {"top_k", 5}});
      },
      ThrowsMessage<UsageError>(HasSubstr("top_k 5 is more than experts 4")));
  EXPECT_THAT(
      [] {
        table_of("resnet", {{"layers", 21}});
      },
      ThrowsMessage<UsageError>(
          HasSubstr("layers 21 is not a published depth; accepted: 18, 20, 32, 34, 50, 56, 110")));
}

// The ids of points are made of resolved options, so those of older studies of mixtures stay the same.
TEST(ModelTables, LaterOptionsAreLeftOutAtTheirDefault) {
  const auto resolved = [](const std::string& text) {
    return to_text(resolve(choice_from_text(text), model_spec("moe").options, "model"));
  };
  EXPECT_EQ(
      resolved("moe"),
      "moe(layers=8, width=512, heads=8, kv_heads=4, inner=1408, sequence=1024, vocabulary=32000, tied=true, "
      "rope_theta=500000.0, rope_factor=1.0, experts=8, top_k=2, shared_inner=0, aux_loss=0.0)");
  EXPECT_EQ(resolved("moe(capacity=0, routing=learned)"), resolved("moe"));
  EXPECT_THAT(
      resolved("moe(capacity=1, routing=hot)"),
      ::testing::EndsWith("aux_loss=0.0, capacity=1.0, routing=hot(experts=1, share=0.5, moves=false))"));
}

TEST(ModelTables, FrozenStatisticsDivideResidualBranchesByTheNumberOfBlocks) {
  const ModelTable table = table_of("resnet", {{"layers", 20}, {"batch_norm", "frozen"}});
  for (const auto& buffer : table.buffers) {
    const bool last = buffer.name.ends_with("bn2.running_var");
    EXPECT_EQ(buffer.value, last ? 9 : buffer.name.ends_with("_var") ? 1 : 0) << buffer.name;
  }
}

}  // namespace
}  // namespace shardmark::specs
