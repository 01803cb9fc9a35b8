// Tests the warnings about suites and runs that depend on the values of a point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/suite.h"
#include "plan/warnings.h"
#include "specs/specs.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

using strategies::Instruction;
using What = Instruction::What;

std::vector<std::string> warnings_of_suite(const std::string& how) {
  return parse_suite("training: {model: gpt2, batch_size: 1, " + how + "}", "s.yaml").warnings;
}

TEST(Warnings, OfSumsOfManyMicroBatchesIn16Bits) {
  EXPECT_THAT(warnings_of_suite("strategy: ddp, precision: bf16, accumulation: [4, 8]"),
              testing::ElementsAre(
                  "s.yaml: gradients of 8 micro-batches are added in bf16, which rounds every sum to "
                  "8 significant bits; take reduce_dtype fp32 to add them in fp32, as Megatron-LM "
                  "does"));
  EXPECT_THAT(warnings_of_suite("strategy: {fsdp: {shard: optimizer}}, precision: fp16, accumulation: 8"),
              testing::ElementsAre(
                  testing::HasSubstr("added in fp16, which rounds every sum to 11 significant bits")));
  for (const char* how :
       {"strategy: ddp, precision: bf16, accumulation: 7", "strategy: ddp, precision: fp32, accumulation: 8",
        "strategy: ddp, precision: bf16, accumulation: 8, reduce_dtype: fp32",
        "strategy: fsdp, precision: bf16, accumulation: 8",
        "strategy: single, precision: bf16, accumulation: 8"})
    EXPECT_THAT(warnings_of_suite(how), testing::IsEmpty()) << how;
}

// Returns whether backward adds the gradient of a micro-batch to that of another one in the memory in which
// blocks compute gradients.
bool adds_where_blocks_compute(const strategies::Program& program, const specs::ModelTable& model) {
  std::vector<strategies::Slice> gradients = program.gradients;
  std::map<size_t, int64_t> held;  // group, and the micro-batch whose gradient is in its memory
  for (const Instruction& i : program.instructions) {
    if (i.what == What::bind_gradients) gradients[static_cast<size_t>(i.index)] = i.to;
    if (i.what == What::zero)
      std::erase_if(held, [&](const auto& one) { return gradients[one.first].overlaps(i.to); });
    if (i.what != What::backward) continue;
    for (size_t group = 0; group < model.groups.size(); ++group) {
      if (i.index < model.groups[group].first_block || i.index > model.groups[group].last_block) continue;
      const auto [found, is_new] = held.emplace(group, i.micro_batch);
      if (!is_new && found->second != i.micro_batch) return true;
    }
  }
  return false;
}

// The warning depends on the name of the strategy. This compares it with what the strategy's program does.
TEST(Warnings, OfSumsIn16BitsFollowThePrograms) {
  const specs::ModelSpec& spec = specs::model_spec("mlp");
  const specs::ModelTable model = spec.table(resolve({"mlp"}, spec.options, "model").options);
  std::vector<Choice> choices;
  for (const auto& [name, strategy] : Registry<strategies::Strategy>::instance().entries())
    if (name != "auto" && name != "fsdp") choices.push_back({name});
  for (const char* shard : {"full", "gradients", "optimizer"})
    choices.push_back({"fsdp", {{"shard", shard}}});
  int num_adding = 0;
  for (const Choice& choice : choices)
    for (const std::string reduce : {"same", "fp32"}) {
      const strategies::Strategy& strategy = strategies::strategy(choice.name);
      TrainingPoint t;
      t.precision = "bf16";
      t.accumulation = 3;
      t.reduce_dtype = reduce;
      t.strategy = resolve(choice, strategy.options, "strategy");
      const strategies::Program program =
          strategy.step({model, /*ranks=*/2, t.accumulation, specs::element_bytes(t.precision, reduce), 0,
                         t.strategy.options});
      const bool adds = adds_where_blocks_compute(program, program.regrouped.value_or(model));
      EXPECT_EQ(adds_in_16_bits(t), adds) << to_text(t.strategy) << ", reduce_dtype " << reduce;
      num_adding += adds ? 1 : 0;
    }
  EXPECT_EQ(num_adding, 2) << "ddp and fsdp(shard=optimizer)";
}

}  // namespace
}  // namespace shardmark
