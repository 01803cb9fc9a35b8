// Tests which ranges of a step's instructions are captured as one CUDA graph each.
// RANKS 1
#include "executor/step_graphs.h"

#include <gtest/gtest.h>

#include "strategies/step_trace.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

using What = strategies::Instruction::What;

TEST(StepGraphs, HoldAPhaseEachAndLoadNothing) {
  const specs::ModelTable table = *specs::model_table(resolved_model("mlp"));
  const strategies::StepInput input{table,         1, /*accumulation=*/3, {2, 4, 4}, /*optimizer_elements=*/2,
                                    /*options=*/{}};
  const strategies::Program program = strategies::strategy("single").step(input);
  const auto stretches = StepGraphs::stretches_of(program);
  const auto& instructions = program.instructions;
  ASSERT_FALSE(stretches.empty());
  size_t next = 0, loads = 0;
  for (const auto& stretch : stretches) {
    EXPECT_EQ(stretch.begin, next);
    ASSERT_LT(stretch.begin, stretch.end);
    next = stretch.end;
    loads += stretch.loads;
    if (stretch.loads) {
      EXPECT_EQ(stretch.end, stretch.begin + 1);
    }
    for (size_t i = stretch.begin; i < stretch.end; ++i) {
      EXPECT_EQ(instructions[i].what == What::data, stretch.loads);
      EXPECT_EQ(strategies::phase_of(instructions[i].part),
                strategies::phase_of(instructions[stretch.begin].part));
    }
  }
  EXPECT_EQ(next, instructions.size());
  EXPECT_EQ(loads, 3);
  EXPECT_EQ(stretches.size(), 3 * 3 + 1);  // per micro-batch: load, forward and backward; plus the update
}

}  // namespace
}  // namespace shardmark
