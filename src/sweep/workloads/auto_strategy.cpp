// Collects what the choice of a strategy depends on: usable memory, predicted activations, and the network.
#include "sweep/workloads/auto_strategy.h"

#include "device/device.h"
#include "device/meter.h"
#include "plan/plan.h"
#include "specs/specs.h"
#include "strategies/auto_choice.h"

namespace shardmark {
namespace {

// Usable share of a device's memory; libraries need the rest.
constexpr double kUsable = 0.8;
// Share of that which a prediction may fill: activations are an estimate, and working memory is not counted.
constexpr double kExpected = 0.9;

// Usable memory of the rank that has the least.
double usable_bytes(const HostGroup& group, at::Device device) {
  const auto limit = static_cast<double>(meter::limit());
  const double mine = limit > 0 ? limit : kUsable * static_cast<double>(device_memory_bytes(device));
  return -group.max(-kExpected * mine);
}

}  // namespace

bool needs_settling(const Point& point) {
  return point.workload != "collective" && point.training.strategy.name == "auto";
}

Settled settle_strategy(const Point& point, const HostGroup& group, Communicator& comm, ProbeCache& probes) {
  if (!needs_settling(point)) return {point, {}, 0};
  const std::string key = comm.transport() + " " + std::to_string(comm.size());
  if (!probes.contains(key)) probes[key] = probe(group, comm);
  const Probe& network = probes[key];

  const strategies::Decision decision =
      strategies::decide(strategies::RankStep(point).input(),
                         {usable_bytes(group, comm.device()), expect(point).activation_bytes,
                          network.ranks_per_node, network.all, network.node});
  Settled settled{point, decision.reason, decision.choice().communication_s};
  settled.point.training.strategy = decision.choice().strategy;
  return settled;
}

}  // namespace shardmark
