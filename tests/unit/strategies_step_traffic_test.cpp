// Tests how many bytes each phase of a step communicates.
#include <gtest/gtest.h>

#include "specs/specs.h"
#include "strategies/program_series.h"
#include "strategies/step_traffic.h"
#include "strategies/strategy.h"

namespace shardmark::strategies {
namespace {

class StepTrafficOf : public ::testing::Test {
 protected:
  StepInput input(const std::string& strategy, bool norm = false) const {
    const Choice choice = choice_from_text(strategy);
    const Choice resolved = resolve(choice, strategies::strategy(choice.name).options, "strategy");
    return {table_, 4, 2, specs::element_bytes("fp32", "same"), 2, resolved.options, norm};
  }
  StepTraffic traffic(const std::string& strategy, bool norm = false) const {
    return step_traffic(program(strategy, norm));
  }
  Program program(const std::string& strategy, bool norm = false) const {
    return strategies::strategy(choice_from_text(strategy).name).step(input(strategy, norm));
  }
  Cost cost(const std::string& strategy) const {
    return strategies::cost_of(choice_from_text(strategy).name, input(strategy));
  }

  ModelTable table_ = specs::model_spec("gpt2").table(
      resolve(choice_from_text("gpt2(layers=3, width=64, heads=4, sequence=32, vocabulary=256)"),
              specs::model_spec("gpt2").options, "model")
          .options);
};

TEST_F(StepTrafficOf, PhasesAddUpToTheStep) {
  for (const char* strategy :
       {"single", "ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "zero3"}) {
    const StepTraffic step = traffic(strategy);
    EXPECT_EQ(step.forward.num_operations + step.backward.num_operations + step.update.num_operations,
              cost(strategy).num_operations)
        << strategy;
    const double bytes = step.forward.bytes + step.backward.bytes + step.update.bytes;
    EXPECT_NEAR(bytes, cost(strategy).traffic_bytes, 1e-9 * bytes) << strategy;
    EXPECT_EQ(step_traffic(program_of(to_series(program(strategy)))), step)
        << strategy << ", as a study keeps it";
  }
}

TEST_F(StepTrafficOf, EachStrategyMovesWhereItShould) {
  EXPECT_EQ(traffic("ddp").forward, PhaseTraffic{});
  EXPECT_GT(traffic("ddp").backward.bytes, 0);
  EXPECT_EQ(traffic("ddp").update, PhaseTraffic{});
  EXPECT_GT(traffic("fsdp").forward.bytes, 0);  // parameters are gathered in forward
  EXPECT_GT(traffic("fsdp").backward.bytes, traffic("fsdp").forward.bytes);
  // Updated parameters are gathered again: the first ones at once, the others when forward approaches them.
  EXPECT_GT(traffic("fsdp(shard=optimizer)").forward.bytes, 0);
  EXPECT_GT(traffic("fsdp(shard=optimizer)").update.bytes, 0);
  // The additional operation reduces the gradient norm.
  EXPECT_EQ(traffic("fsdp", true).update.num_operations, traffic("fsdp").update.num_operations + 1);
}

TEST_F(StepTrafficOf, OfADamagedProgramIsNone) { EXPECT_EQ(step_traffic(Program{}), StepTraffic{}); }

}  // namespace
}  // namespace shardmark::strategies
