// Compares the memory of a strategy, as the memory meter counts it, with its formula, on CPUs and on GPUs.
#pragma once

#include <gtest/gtest.h>

#include "device/meter.h"
#include "specs/layout.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {

// Compares allocations with costs. The meter must be installed.
class CostChecks {
 public:
  CostChecks(const HostGroup& world, Communicator& comm) : world_(world), comm_(comm) {}

  strategies::Cost cost(const Case& c, const std::string& strategy) {
    const Choice model = resolved_model(c.model);
    const Choice choice = resolved_strategy(strategy);
    const Choice optimizer = resolved_optimizer(c.optimizer);
    const specs::ModelTable table = specs::model_spec(model.name).table(model.options);
    return strategies::cost_of(
        choice.name, {table, comm_.size(), c.accumulation, bytes_of(c.precision.value_or(uniform(c.dtype))),
                      specs::optimizer_specs().at(optimizer.name).state_elements(optimizer.options),
                      choice.options, /*norm=*/true});
  }

  void check(const Case& c, const std::string& strategy) {
    SCOPED_TRACE(c.model + " " + strategy + " accumulation " + std::to_string(c.accumulation));
    const strategies::Cost expected = cost(c, strategy);
    MemoryReading held;
    const MemoryReading before = meter::read();
    train(c, strategy, comm_, {.change = {}, .made = [&] { held = meter::read(); }});
    const auto bytes = [&](MemoryUse use) {
      return largest(static_cast<double>(held.of(use) - before.of(use)));
    };
    EXPECT_EQ(bytes(MemoryUse::parameters), expected.parameter_bytes);
    EXPECT_EQ(bytes(MemoryUse::gradients), expected.gradient_bytes);
    EXPECT_EQ(bytes(MemoryUse::transient), expected.transient_bytes);
    EXPECT_GE(bytes(MemoryUse::offloaded), expected.offloaded_bytes);
    EXPECT_LE(bytes(MemoryUse::offloaded),
              expected.offloaded_bytes + (expected.offloaded_bytes > 0 ? 6400 : 0));
    // AdamW keeps its step count, a float, in addition to the moments of each shard. The allocator of a GPU
    // rounds up the size of each of them.
    const double room = comm_.device().is_cuda() ? 512.0 * (2 * num_tensors(c) + 1) : 64 * 100;
    EXPECT_GE(bytes(MemoryUse::optimizer), expected.optimizer_bytes);
    EXPECT_LE(bytes(MemoryUse::optimizer), expected.optimizer_bytes + room);
  }

 private:
  static double num_tensors(const Case& c) {
    const Choice model = resolved_model(c.model);
    double count = 0;
    for (const auto& group : specs::model_spec(model.name).table(model.options).groups)
      count += static_cast<double>(group.parameters.size());
    return count;
  }

  double largest(double mine) { return world_.max(mine); }

  const HostGroup& world_;
  Communicator& comm_;
};

}  // namespace shardmark
