// Memory and traffic of every registered strategy equal their law, as the meter and the transport count them.
// RANKS 1 2 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "device/meter.h"
#include "laws/layout.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

const std::vector<std::string> kVariants = {"fsdp(shard=gradients)",
                                            "fsdp(shard=optimizer)",
                                            "fsdp(prefetch=3)",
                                            "zero3(prefetch=0)",
                                            "fsdp(layout=dim0)",
                                            "fsdp(layout=dim0, shard=gradients)",
                                            "fsdp(layout=dim0, shard=optimizer)",
                                            "zero3(persistence=30)",
                                            "fsdp(offload=optimizer)",
                                            "ddp(bucket_mb=0.02, first_bucket_mb=0.004)"};
// Of ddp, over several buckets.
const std::vector<std::string> kReductions = {"cast(to=bf16)", "topk(ratio=0.01)", "topk(ratio=1)",
                                              "int8",          "powersgd(rank=2)", "powersgd(rank=64)"};
const std::vector<std::string> kModels = {"mlp(features=13, width=19, layers=3, classes=5)",
                                          "mlp(features=5, layers=1, classes=3)",  // fewer tensors than ranks
                                          "gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37)",
                                          "resnet(layers=20, width=3, batch_norm=local)"};

class StrategyLaws : public ::testing::Test {
 protected:
  StrategyLaws() {
    static const bool installed = (meter::install(), true);
    EXPECT_TRUE(installed);
    comm = make_communicator("mpi", world, at::kCPU);
    at::set_num_threads(1);
  }

  laws::Cost law(const Case& c, const std::string& strategy) {
    const Choice model = resolved_model(c.model);
    const Choice choice = resolved_strategy(strategy);
    const Choice optimizer = resolved_optimizer(c.optimizer);
    const laws::ModelTable table = laws::model_law(model.name).table(model.options);
    return laws::strategy_law(choice.name)
        .cost({table, comm->size(), c.accumulation, bytes_of(c),
               laws::optimizer_laws().at(optimizer.name).state_elements(optimizer.options), choice.options});
  }

  static laws::ElementBytes bytes_of(const Case& c) {
    const Precision types = c.precision.value_or(uniform(c.dtype));
    const auto bytes = [](at::ScalarType type) { return static_cast<int64_t>(at::elementSize(type)); };
    return {bytes(types.compute), bytes(types.master), bytes(types.reduce)};
  }

  double largest(double mine) { return world.max(mine); }
  double mean(double mine) { return world.sum(mine) / comm->size(); }

  void check(const Case& c, const std::string& strategy) {
    SCOPED_TRACE(c.model + " " + strategy + " accumulation " + std::to_string(c.accumulation));
    const laws::Cost expected = law(c, strategy);
    MemoryReading held;
    const MemoryReading before = meter::read();
    train(c, strategy, *comm, nullptr, [&](std::unique_ptr<Strategy> inner) {
      held = meter::read();
      return inner;
    });
    const auto bytes = [&](MemoryUse use) {
      return largest(static_cast<double>(held.of(use) - before.of(use)));
    };
    EXPECT_EQ(bytes(MemoryUse::parameters), expected.parameter_bytes);
    EXPECT_EQ(bytes(MemoryUse::gradients), expected.gradient_bytes);
    EXPECT_EQ(bytes(MemoryUse::transient), expected.transient_bytes);
    EXPECT_GE(bytes(MemoryUse::offloaded), expected.offloaded_bytes);
    EXPECT_LE(bytes(MemoryUse::offloaded),
              expected.offloaded_bytes + (expected.offloaded_bytes > 0 ? 6400 : 0));
    // AdamW keeps its step count, a float, beside the moments of each piece.
    EXPECT_GE(bytes(MemoryUse::optimizer), expected.optimizer_bytes);
    EXPECT_LE(bytes(MemoryUse::optimizer), expected.optimizer_bytes + 64 * 100);

    EXPECT_NEAR(traffic_of_steps(c, strategy).law_bytes, expected.traffic_bytes,
                1e-6 * expected.traffic_bytes + 1e-9);
  }

  // Of one step, mean over ranks: a run of three steps against one of one step, so that set-up and visits
  // cancel out.
  Traffic traffic_of_steps(Case c, const std::string& strategy) {
    Traffic result;
    double one = 0;
    for (const int64_t steps : {1, 3}) {
      c.num_steps = steps;
      comm->reset_traffic();
      train(c, strategy, *comm, nullptr);
      const double total = mean(comm->traffic().law_bytes);
      if (steps == 1)
        one = total;
      else
        // the fixture's own sums of losses and norms, 8 bytes each, are all-reduced too
        result.law_bytes = (total - one) / 2 - fixture_bytes(strategy);
    }
    return result;
  }

  double fixture_bytes(const std::string& strategy) const {
    const double loss = 8 * laws::ring_factor("all_reduce", comm->size());
    if (strategy.starts_with("ddp") || strategy.starts_with("single")) return loss;
    const bool in_twos = strategy.find("group=2") != std::string::npos;
    return loss + 8 * laws::ring_factor("all_reduce", in_twos ? 2 : comm->size());
  }

  HostGroup world = HostGroup::world();
  std::unique_ptr<Communicator> comm;
};

TEST_F(StrategyLaws, EqualWhatIsAllocatedAndSent) {
  std::vector<std::string> strategies = kVariants;
  for (const auto& reduction : kReductions)
    strategies.push_back("ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=" + reduction + ")");
  for (const auto& [name, entry] : Registry<StrategyEntry>::instance().entries()) strategies.push_back(name);
  for (const auto& model : kModels)
    for (const auto& strategy : strategies)
      for (const int64_t accumulation : {1, 3})
        check({model, "adamw(lr=0.001)", at::kFloat, 2, accumulation, 1}, strategy);
}

// Sharded in groups of two, replicated across them; tensors dealt by their number.
TEST_F(StrategyLaws, GroupsAndEvenness) {
  const Case c{kModels[2], "adamw(lr=0.001)", at::kFloat, 2, 3, 1};
  check(c, "zero3(evenness=count)");
  if (comm->size() % 2 != 0) return;
  for (const std::string shard : {"full", "gradients", "optimizer"})
    for (const std::string layout : {"flat", "dim0"})
      check(c, "fsdp(group=2, shard=" + shard + ", layout=" + layout + ")");
}

TEST_F(StrategyLaws, OptimizerStateFollowsTheOptimizer) {
  for (const auto* optimizer : {"sgd(lr=0.1, momentum=0)", "sgd(lr=0.1, momentum=0.9)", "adamw(lr=0.1)"})
    check({kModels[0], optimizer, at::kDouble, 2, 1, 1}, "fsdp");
}

// Master weights, copies, gradients in either type on their way.
TEST_F(StrategyLaws, MixedPrecision) {
  for (const auto reduce : {at::kBFloat16, at::kFloat}) {
    for (const auto& [strategy, entry] : Registry<StrategyEntry>::instance().entries()) {
      Case c{kModels[2], "adamw(lr=0.001)", at::kFloat, 2, 2, 1};
      c.precision = Precision{at::kBFloat16, at::kFloat, reduce};
      check(c, strategy);
      if (strategy != "fsdp") continue;
      for (const std::string options : {"shard=gradients", "shard=optimizer", "offload=optimizer",
                                        "layout=dim0", "layout=dim0, shard=optimizer"})
        check(c, "fsdp(" + options + ")");
    }
  }
}

TEST_F(StrategyLaws, MemoryShrinksWithRanks) {
  const Case c{kModels[2], "adamw(lr=0.001)", at::kFloat};
  const auto table = laws::model_law("gpt2").table(resolved_model(c.model).options);
  const double whole = static_cast<double>(table.num_parameters()) * 4;
  const double padding = static_cast<double>(laws::kAlignment * 4 * 60 * comm->size());
  EXPECT_NEAR(law(c, "fsdp").parameter_bytes, whole / comm->size(), padding);
  EXPECT_NEAR(law(c, "ddp").parameter_bytes, whole, padding);
  EXPECT_GE(law(c, "zero3").parameter_bytes, whole / comm->size());
}

}  // namespace
}  // namespace shardmark
