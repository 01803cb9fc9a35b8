// RANKS 1 2 3 4
// Tests parameters that get no gradient in a step: never, in every second step, or only on some ranks.
// Nothing deadlocks, and every strategy computes the same as `single`. DDP's find_unused_parameters is not
// needed here, because the gradients of a block are reduced whether or not its backward wrote them.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/layers.h"
#include "specs/models/parameters.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

constexpr int64_t kWidth = 7, kClasses = 5;

specs::ModelTable forked_table(const Options&) {
  specs::ModelTable table;
  const auto matrix = [](const std::string& name, int64_t out) {
    return specs::ParameterSpec{name, {out, kWidth}, specs::Initial::normal, 0.5};
  };
  const auto vector = [](const std::string& name, int64_t out) {
    return specs::ParameterSpec{name, {out}, specs::Initial::zeros};
  };
  table.blocks = {{"fork", 0, 0}, {"head", 0, 0}};
  table.groups = {
      {"fork",
       {matrix("left.weight", kWidth), vector("left.bias", kWidth), matrix("right.weight", kWidth),
        vector("right.bias", kWidth), matrix("spare.weight", kWidth)},
       0,
       0},
      {"head", {matrix("fc.weight", kClasses), vector("fc.bias", kClasses)}, 1, 1}};
  table.sample = {specs::SampleShape::Kind::rows, {kWidth}, kClasses};
  table.flops_formula = "none";
  return table;
}

// Takes the left or the right branch, either in turns or depending on the batch, which differs between ranks.
void add_forked_blocks(Model& model, const Options& options) {
  const auto left = layer<Linear>(model, "left"), right = layer<Linear>(model, "right");
  const auto fc = layer<Linear>(model, "fc");
  const bool by_data = options.at("by") == "data";
  const auto turn = std::make_shared<int64_t>(0);
  model.add_block({"fork", [=](const at::Tensor& x, const Batch&) {
                     const bool to_left = by_data ? x.sum().item<double>() > 0 : (*turn)++ % 2 == 0;
                     return at::relu(to_left ? left(x) : right(x));
                   }});
  model.add_block(
      {"head", [=](const at::Tensor& x, const Batch& batch) { return loss_or_logits(fc(x), batch); }});
}

const OptionTable kOptions = {{"by", OptionType::text, "turn", "which way", {"turn", "data"}}};

std::vector<std::string> unfinished_strategies() {
  return {
      "ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "zero3", "ddp(first_bucket_mb=0.001)"};
}

class UnusedParameters : public ::testing::Test {
 protected:
  // Registers the model here, so that tests in other files do not use it.
  static void SetUpTestSuite() {
    static const Registration<specs::ModelSpec> spec{"forked", {"two ways", kOptions, forked_table}};
    static const Registration<ModelEntry> blocks{"forked", {"two ways", add_forked_blocks}};
  }
  UnusedParameters() { at::set_num_threads(1); }
  HostGroup world = HostGroup::world();
  std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
  std::unique_ptr<Communicator> alone = comm->split(comm->rank(), 0);
};

TEST_F(UnusedParameters, EqualSingleWhereTheRanksTakeTurns) {
  for (const std::string optimizer :
       {"sgd(lr=0.1, momentum=0.9, weight_decay=0.01)", "adamw(lr=0.01, eps=1e-5)"}) {
    const Case c{"forked", optimizer};
    const Outcomes single = train_single(c, *alone, comm->size());
    for (const auto& strategy : unfinished_strategies()) {
      SCOPED_TRACE(strategy + " " + optimizer);
      const Outcomes run = train(c, strategy, *comm);
      EXPECT_LE(largest_relative(run.norms, single.norms), 1e-10);
      EXPECT_LE(parameter_error(run, single), 1e-10);
    }
  }
}

TEST_F(UnusedParameters, AgreeWhereRanksGoDifferentWays) {
  const Case c{"forked(by=data)", "sgd(lr=0.1, momentum=0.9)"};
  const Outcomes first = train(c, "ddp", *comm);
  for (const auto& strategy : unfinished_strategies())
    EXPECT_LE(parameter_error(train(c, strategy, *comm), first), 1e-10) << strategy;
}

}  // namespace
}  // namespace shardmark
