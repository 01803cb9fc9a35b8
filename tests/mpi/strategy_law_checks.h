// Memory and traffic of a strategy against their law, as the meter and the transport count them: on CPUs and
// on GPUs.
#pragma once

#include <gtest/gtest.h>

#include "device/meter.h"
#include "laws/layout.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {

// The meter must be installed.
class LawChecks {
 public:
  LawChecks(const HostGroup& world, Communicator& comm) : world_(world), comm_(comm) {}

  laws::Cost law(const Case& c, const std::string& strategy) {
    const Choice model = resolved_model(c.model);
    const Choice choice = resolved_strategy(strategy);
    const Choice optimizer = resolved_optimizer(c.optimizer);
    const laws::ModelTable table = laws::model_law(model.name).table(model.options);
    return laws::strategy_law(choice.name)
        .cost({table, comm_.size(), c.accumulation, bytes_of(c),
               laws::optimizer_laws().at(optimizer.name).state_elements(optimizer.options), choice.options});
  }

  void check(const Case& c, const std::string& strategy) {
    SCOPED_TRACE(c.model + " " + strategy + " accumulation " + std::to_string(c.accumulation));
    const laws::Cost expected = law(c, strategy);
    MemoryReading held;
    const MemoryReading before = meter::read();
    train(c, strategy, comm_, nullptr, [&](std::unique_ptr<Strategy> inner) {
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
    // AdamW keeps its step count, a float, beside the moments of each piece. The allocator of a GPU rounds
    // each of them up.
    const double room = comm_.device().is_cuda() ? 512.0 * (2 * num_tensors(c) + 1) : 64 * 100;
    EXPECT_GE(bytes(MemoryUse::optimizer), expected.optimizer_bytes);
    EXPECT_LE(bytes(MemoryUse::optimizer), expected.optimizer_bytes + room);

    EXPECT_NEAR(traffic_of_steps(c, strategy).law_bytes, expected.traffic_bytes,
                1e-6 * expected.traffic_bytes + 1e-9);
  }

 private:
  static laws::ElementBytes bytes_of(const Case& c) {
    const Precision types = c.precision.value_or(uniform(c.dtype));
    const auto bytes = [](at::ScalarType type) { return static_cast<int64_t>(at::elementSize(type)); };
    return {bytes(types.compute), bytes(types.master), bytes(types.reduce)};
  }

  static double num_tensors(const Case& c) {
    const Choice model = resolved_model(c.model);
    double count = 0;
    for (const auto& group : laws::model_law(model.name).table(model.options).groups)
      count += static_cast<double>(group.parameters.size());
    return count;
  }

  double largest(double mine) { return world_.max(mine); }
  double mean(double mine) { return world_.sum(mine) / comm_.size(); }

  // Of one step, mean over ranks: a run of three steps against one of one step, so that set-up and visits
  // cancel out.
  Traffic traffic_of_steps(Case c, const std::string& strategy) {
    Traffic result;
    double one = 0;
    for (const int64_t steps : {1, 3}) {
      c.num_steps = steps;
      comm_.reset_traffic();
      train(c, strategy, comm_, nullptr);
      const double total = mean(comm_.traffic().law_bytes);
      if (steps == 1)
        one = total;
      else
        // the fixture's own sums of losses and norms, 8 bytes each, are all-reduced too
        result.law_bytes = (total - one) / 2 - fixture_bytes(strategy);
    }
    return result;
  }

  double fixture_bytes(const std::string& strategy) const {
    const double loss = 8 * laws::ring_factor("all_reduce", comm_.size());
    if (strategy.starts_with("ddp") || strategy.starts_with("single")) return loss;
    const bool in_twos = strategy.find("group=2") != std::string::npos;
    return loss + 8 * laws::ring_factor("all_reduce", in_twos ? 2 : comm_.size());
  }

  const HostGroup& world_;
  Communicator& comm_;
};

}  // namespace shardmark
