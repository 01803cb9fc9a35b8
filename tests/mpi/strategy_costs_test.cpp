// The memory of every registered strategy, as the memory meter counts it, equals its formula.
// RANKS 1 2 4
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "strategies/activations.h"
#include "tests/mpi/layouts_fixture.h"
#include "tests/mpi/strategy_cost_checks.h"

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
// Reductions of ddp, over several buckets.
const std::vector<std::string> kReductions = {"cast(to=bf16)", "topk(ratio=0.01)", "topk(ratio=1)",
                                              "int8",          "powersgd(rank=2)", "powersgd(rank=64)"};
const std::vector<std::string> kSpecModels = {
    "mlp(features=13, width=19, layers=3, classes=5)",
    "mlp(features=5, layers=1, classes=3)",  // fewer tensors than ranks
    "gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37)",
    "llama(layers=2, width=24, heads=6, kv_heads=2, inner=20, sequence=11, vocabulary=37, tied=false)",
    "moe(layers=2, width=24, heads=2, kv_heads=1, inner=20, sequence=11, vocabulary=37, experts=3)",
    "resnet(layers=20, width=3, batch_norm=local)"};

class StrategyCosts : public ::testing::Test {
 protected:
  StrategyCosts() {
    static const bool installed = (meter::install(), true);
    EXPECT_TRUE(installed);
    at::set_num_threads(1);
  }

  strategies::Cost cost(const Case& c, const std::string& strategy) {
    return CostChecks(world, *comm).cost(c, strategy);
  }
  void check(const Case& c, const std::string& strategy) { CostChecks(world, *comm).check(c, strategy); }

  HostGroup world = HostGroup::world();
  std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
};

TEST_F(StrategyCosts, EqualWhatIsAllocated) {
  std::vector<std::string> strategies = kVariants;
  for (const auto& reduction : kReductions)
    strategies.push_back("ddp(bucket_mb=0.02, first_bucket_mb=0.004, reduction=" + reduction + ")");
  for (const auto& [name, entry] : Registry<strategies::Strategy>::instance().entries())
    strategies.push_back(name);
  for (const auto& model : kSpecModels)
    for (const auto& strategy : strategies)
      for (const int64_t accumulation : {1, 3})
        check({model, "adamw(lr=0.001)", at::kFloat, 2, accumulation, 1}, strategy);
}

// The peak of a step minus the memory of its program, with and without recomputation. Transports also
// allocate memory, so this runs on one rank.
TEST_F(StrategyCosts, ActivationsAreWithinATenthOfTheTable) {
  if (world.size() > 1) GTEST_SKIP() << "on one rank";
  struct Sized {
    const char* model;
    int64_t batch_size;
  };
  for (const Sized& sized :
       {Sized{"mlp(features=64, width=128, layers=6)", 512},
        Sized{"gpt2(layers=4, width=64, heads=4, sequence=64, vocabulary=256)", 8},
        Sized{"gpt2(layers=2, width=32, heads=2, sequence=64, vocabulary=2000)", 8},
        Sized{
            "moe(layers=4, width=64, heads=4, kv_heads=2, inner=88, sequence=64, vocabulary=256, experts=4)",
            8},
        Sized{"llama(layers=4, width=64, heads=4, kv_heads=2, inner=176, sequence=64, vocabulary=256)", 8},
        Sized{"llama(layers=2, width=32, heads=2, kv_heads=1, inner=64, sequence=64, vocabulary=2000, "
              "tied=false)",
              8},
        Sized{"resnet(layers=20, width=8)", 32}, Sized{"resnet(layers=18, width=8, image=64)", 32},
        Sized{"resnet(layers=50, width=8, image=64)", 32}})
    for (const int64_t recompute : {0, 1, 2})
      for (const int64_t accumulation : {1, 2}) {
        Case c{sized.model, "sgd(lr=0.01)", at::kFloat, sized.batch_size, accumulation, 1};
        c.recompute = recompute;
        int64_t held = 0;
        const auto begins = [&] {
          held = meter::read().total;
          meter::reset_peak();
        };
        train(c, "single", *comm, {.change = {}, .made = {}, .begins = begins});
        const auto measured = static_cast<double>(meter::read().peak - held);
        const specs::ModelTable table =
            specs::model_spec(choice_from_text(c.model).name).table(resolved_model(c.model).options);
        strategies::StepInput input{table, 1, accumulation, {}, 1, {}};
        input.recompute = recompute;
        const double predicted = strategies::activation_bytes(input, static_cast<double>(sized.batch_size));
        EXPECT_NEAR(predicted / measured, 1, 0.1)
            << c.model << ", every " << recompute << ", " << accumulation << " micro-batches: measured "
            << measured << ", predicted " << predicted;
      }
}

// Sharded within groups of two ranks and replicated across them; and tensors distributed by their number.
TEST_F(StrategyCosts, GroupsAndEvenness) {
  const Case c{kSpecModels[2], "adamw(lr=0.001)", at::kFloat, 2, 3, 1};
  check(c, "zero3(evenness=count)");
  if (comm->size() % 2 != 0) return;
  for (const std::string shard : {"full", "gradients", "optimizer"})
    for (const std::string layout : {"flat", "dim0"})
      check(c, "fsdp(group=2, shard=" + shard + ", layout=" + layout + ")");
}

TEST_F(StrategyCosts, OptimizerStateFollowsTheOptimizer) {
  for (const auto* optimizer : {"sgd(lr=0.1, momentum=0)", "sgd(lr=0.1, momentum=0.9)", "adamw(lr=0.1)"})
    check({kSpecModels[0], optimizer, at::kDouble, 2, 1, 1}, "fsdp");
}

// Includes master weights, their copies, and gradients that are reduced in either type.
TEST_F(StrategyCosts, MixedPrecision) {
  for (const auto reduce : {at::kBFloat16, at::kFloat}) {
    for (const auto& [strategy, entry] : Registry<strategies::Strategy>::instance().entries()) {
      Case c{kSpecModels[2], "adamw(lr=0.001)", at::kFloat, 2, 2, 1};
      c.precision = Precision{at::kBFloat16, at::kFloat, reduce};
      check(c, strategy);
      if (strategy != "fsdp") continue;
      for (const std::string options : {"shard=gradients", "shard=optimizer", "offload=optimizer",
                                        "layout=dim0", "layout=dim0, shard=optimizer"})
        check(c, "fsdp(" + options + ")");
    }
  }
}

// If a block has failed, its collectives still run, on a buffer of the program that is as long as the largest
// of them. With two tensor-parallel ranks these are 2 samples of 64 tokens with 64 channels.
TEST_F(StrategyCosts, CallsInsideBlocksHaveABuffer) {
  if (comm->size() != 2) GTEST_SKIP() << "tensor ranks are 2";
  const std::string model = "gpt2(layers=2, width=64, heads=4, sequence=64, vocabulary=256)";
  for (const std::string strategy : {"ddp", "fsdp", "fsdp(shard=gradients)", "zero3"}) {
    SCOPED_TRACE(strategy);
    const Point point = point_of({.model = model, .strategy = strategy, .tensor = 2}, comm->size());
    TrainingSetup setup(point, *comm);
    const MemoryReading before = meter::read();
    setup.allocate();
    const MemoryReading held = meter::read();
    const auto bytes = [&](MemoryUse use) { return static_cast<double>(held.of(use) - before.of(use)); };
    const strategies::Program& program = setup.state->program();
    const double largest = 2 * 64 * 64 * sizeof(double);
    EXPECT_EQ(static_cast<double>(program.inside_block.numel) * sizeof(double), largest);
    EXPECT_EQ(bytes(MemoryUse::transient),
              strategies::cost_of(program, setup.rank_step.input()).transient_bytes);
    EXPECT_GE(bytes(MemoryUse::transient), largest);
    EXPECT_LT(bytes(MemoryUse::other), largest);
  }
}

TEST_F(StrategyCosts, MemoryShrinksWithRanks) {
  const Case c{kSpecModels[2], "adamw(lr=0.001)", at::kFloat};
  const auto table = specs::model_spec("gpt2").table(resolved_model(c.model).options);
  const double whole = static_cast<double>(table.num_parameters()) * 4;
  const double padding = static_cast<double>(specs::kAlignment * 4 * 60 * comm->size());
  EXPECT_NEAR(cost(c, "fsdp").parameter_bytes, whole / comm->size(), padding);
  EXPECT_NEAR(cost(c, "ddp").parameter_bytes, whole, padding);
  EXPECT_GE(cost(c, "zero3").parameter_bytes, whole / comm->size());
}

}  // namespace
}  // namespace shardmark
