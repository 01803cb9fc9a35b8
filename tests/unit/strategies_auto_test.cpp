// Tests each branch of the strategy `auto`, which decides by memory and network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "specs/specs.h"
#include "strategies/auto.h"

namespace shardmark::strategies {
namespace {

using ::testing::HasSubstr;

class AutoChoice : public ::testing::Test {
 protected:
  Decision decide_on(int64_t ranks, const DecisionInputs& around, int64_t accumulation = 1) {
    return decide({table_, ranks, accumulation, specs::element_bytes("fp32", "same"), 2, {}}, around);
  }
  static std::string chosen(const Decision& decision) {
    const Choice& strategy = decision.choice().strategy;
    return to_text(without_defaults(strategy, strategies::strategy(strategy.name).options));
  }
  // Returns the memory per rank that suffices for this candidate but for none that needs more.
  double just_enough_for(const std::string& name, int64_t ranks) {
    for (const auto& candidate : decide_on(ranks, {}).candidates) {
      const Choice& strategy = candidate.strategy;
      if (to_text(without_defaults(strategy, strategies::strategy(strategy.name).options)) == name)
        return candidate.needed_bytes;
    }
    ADD_FAILURE() << "no candidate " << name;
    return 0;
  }

  ModelTable table_ =
      specs::model_spec("gpt2").table(resolve({"gpt2"}, specs::model_spec("gpt2").options, "model").options);
  static constexpr ProbedLink kSlow{1e-5, 1e9};
};

TEST_F(AutoChoice, MemoryDecidesWhatIsCut) {
  for (const std::string name :
       {"ddp", "fsdp(shard=optimizer)", "fsdp(shard=gradients)", "fsdp", "fsdp(offload=optimizer)"}) {
    const Decision decision = decide_on(8, {.memory_bytes = just_enough_for(name, 8), .all = kSlow});
    EXPECT_EQ(chosen(decision), name);
    EXPECT_THAT(decision.reason, HasSubstr("auto chose " + name + ": "));
  }
}

TEST_F(AutoChoice, TheReasonNamesWhatDoesNotFit) {
  const auto memory = just_enough_for("fsdp", 8);
  EXPECT_THAT(decide_on(8, {.memory_bytes = memory, .all = kSlow}).reason,
              HasSubstr("2 of 5 candidates fit into 640 MiB (ddp needs 1.85 GiB)"));
}

TEST_F(AutoChoice, WhereNothingFitsTheLeanest) {
  const Decision decision = decide_on(8, {.memory_bytes = 1e6, .all = kSlow});
  EXPECT_EQ(chosen(decision), "fsdp(offload=optimizer)");
  EXPECT_THAT(decision.reason, HasSubstr("nothing fits into the 977 KiB of a rank; it needs the least"));
}

TEST_F(AutoChoice, AccumulationMakesReductionsDear) {
  // Sharded gradients are reduced in every micro-batch. A sharded optimizer state needs only one reduction
  // per step.
  const DecisionInputs around{.memory_bytes = just_enough_for("fsdp(shard=optimizer)", 8), .all = kSlow};
  EXPECT_EQ(chosen(decide_on(8, around, 16)), "fsdp(shard=optimizer)");
}

TEST_F(AutoChoice, ASlowNetworkBetweenNodesMakesGroups) {
  const double memory = just_enough_for("fsdp(shard=gradients)", 32) - 1;
  DecisionInputs around{.memory_bytes = memory, .ranks_per_node = 16, .all = kSlow, .node = {1e-5, 400e9}};
  EXPECT_EQ(chosen(decide_on(32, around)), "fsdp(group=16)");
  around.node = {1e-5, 1e9};
  around.all = {1e-5, 400e9};  // the network between nodes is fast here
  EXPECT_EQ(chosen(decide_on(32, around)), "fsdp");
}

TEST_F(AutoChoice, OneRankAndAnUnknownNetworkTakeTheSimplest) {
  EXPECT_EQ(chosen(decide_on(1, {.memory_bytes = 80e9})), "ddp");
  EXPECT_EQ(chosen(decide_on(64, {})), "ddp");
}

// Four ranks of a node cannot be divided among three that share experts.
TEST_F(AutoChoice, TakesOnlyGroupsThatExpertsAllow) {
  const Choice moe = choice_from_text("moe(experts=12)");
  const ModelTable whole =
      specs::model_spec("moe").table(resolve(moe, specs::model_spec("moe").options, "model").options);
  for (const int64_t expert : {2, 3, 4, 12}) {
    const ModelTable table = specs::split_table(whole, {.expert = expert});
    StepInput input{table, 12, 1, specs::element_bytes("fp32", "same"), 2, {}};
    input.mesh.data = 12;
    input.mesh.expert = expert;
    const Decision decision = decide(input, {.ranks_per_node = 4, .all = kSlow, .node = kSlow});
    const auto has_groups =
        std::any_of(decision.candidates.begin(), decision.candidates.end(), [](const Candidate& candidate) {
          return candidate.strategy.options.contains("group") && candidate.strategy.options.at("group") == 4;
        });
    EXPECT_EQ(has_groups, expert != 3) << expert;
    input.options = resolve(choice_from_text("fsdp(group=4)"), strategy("fsdp").options, "strategy").options;
    EXPECT_EQ(strategy("fsdp").impossible(input),
              expert != 3
                  ? ""
                  : "expert 3 neither divides group 4 nor is a multiple of it; take group 3 or leave it "
                    "out");
  }
}

}  // namespace
}  // namespace shardmark::strategies
