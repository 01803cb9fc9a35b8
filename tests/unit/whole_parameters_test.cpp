// Tests when ZeRO-1 and ZeRO-2 gather the parameters that the optimizer has updated.
#include <gtest/gtest.h>

#include "schema/choice.h"
#include "specs/specs.h"
#include "strategies/strategy.h"

namespace shardmark::strategies {
namespace {

Program program_of(const std::string& strategy_text, int64_t tensor) {
  Point point;
  point.workload = "training";
  point.ranks = 4;
  TrainingPoint& t = point.training;
  t.model = resolve(choice_from_text("gpt2(layers=8, width=12, heads=2, sequence=8, vocabulary=17)"),
                    specs::model_spec("gpt2").options, "model");
  const Choice written = choice_from_text(strategy_text);
  t.strategy = resolve(written, strategy(written.name).options, "strategy");
  t.optimizer = {"sgd", {{"lr", 0.1}, {"momentum", 0.0}, {"weight_decay", 0.0}}};
  t.precision = "bf16";
  t.batch_size = 1;
  t.tensor = tensor;
  return strategy(written.name).step(RankStep(point).input());
}

// NCCL executes operations in the order in which they start. Gathers that are queued before the first
// exchange inside a block delay it.
TEST(WholeParameters, FewGathersAreInFrontOfTheFirstBlocks) {
  for (const char* strategy : {"fsdp(shard=optimizer)", "fsdp(shard=gradients)"})
    for (const int64_t tensor : {1, 2}) {
      const Program program = program_of(strategy, tensor);
      int64_t published = 0, all = 0;
      for (const Instruction& instruction : program.instructions) {
        if (instruction.what != Instruction::What::start) continue;
        for (int64_t call = instruction.index; call < instruction.index + instruction.count; ++call) {
          const CollectiveCall& of = program.calls[static_cast<size_t>(call)];
          if (of.what != Collective::all_gather || of.inside_block) continue;
          ++all;
          published += instruction.part == StepPart::publish;
        }
      }
      EXPECT_GE(all, 10) << "each block's";
      EXPECT_LE(published, 4) << strategy;
      EXPECT_GT(published, 0) << strategy;
    }
}

}  // namespace
}  // namespace shardmark::strategies
