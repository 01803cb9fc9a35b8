// Collects what the choice of a strategy depends on: usable memory, predicted activations, and the network.
#include "sweep/workloads/auto_strategy.h"

#include <algorithm>

#include "base/stats.h"
#include "device/device.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "plan/plan.h"
#include "specs/specs.h"
#include "strategies/auto.h"

namespace shardmark {
namespace {

constexpr double kLimitS = 0.1;  // for the repetitions of one size
// An operation that takes this long is limited by bandwidth.
constexpr double kLongS = 0.01;
constexpr int64_t kMostTimes = 20;

// The median time of an all-reduce on the slowest rank, without the first one. Ranks agree on the time after
// every operation, so that all of them stop together.
double all_reduce_s(const HostGroup& group, Communicator& comm, int64_t numel) {
  const at::Tensor tensor = comm.allocate(numel, at::kFloat);
  std::vector<double> times;
  double total = 0;
  for (int64_t i = 0; i <= kMostTimes && total < kLimitS; ++i) {
    group.barrier();
    const double begin = now_s();
    comm.all_reduce(tensor, ReduceOp::sum).wait();
    synchronize(comm.device());
    const double slowest = group.max(now_s() - begin);
    if (i > 0) times.push_back(slowest);
    total += slowest;
  }
  return times.empty() ? total : median(times);
}

// Two sizes give the two numbers of a line: the time of the small message counts as latency alone, and the
// additional time of the large one as its bytes over the bandwidth.
strategies::ProbedLink measure_link(const HostGroup& group, Communicator& comm) {
  if (comm.size() == 1) return {};
  constexpr int64_t kSmall = 256, kMostNumel = 16 << 20;  // elements: 1 KiB, 64 MiB
  const double small_s = all_reduce_s(group, comm, kSmall);
  int64_t numel = kSmall;
  double large_s = small_s;
  while (large_s < kLongS && numel < kMostNumel) large_s = all_reduce_s(group, comm, numel *= 16);
  const double bytes =
      4.0 * static_cast<double>(numel) * specs::ring_factor(Collective::all_reduce, comm.size());
  return {small_s, bytes / std::max(large_s - small_s, 1e-9)};
}

// Measures what an operation costs on this network, in well under two seconds, with all-reduces: first a
// small one, then larger and larger ones until one takes long enough to be limited by bandwidth. On a slow
// network that happens early. All ranks get the same result. Collective; `group` must have the ranks of
// `comm`.
Probe probe(const HostGroup& group, Communicator& comm) {
  Probe result;
  result.all = measure_link(group, comm);
  result.ranks_per_node = group.even_ranks_per_node();
  if (result.ranks_per_node > 0) {
    const int node = group.rank() / static_cast<int>(result.ranks_per_node);
    const HostGroup in_node = group.split(node, group.rank());
    const strategies::ProbedLink mine = measure_link(in_node, *comm.split(node, group.rank()));
    // Take the slowest node.
    result.node = {group.max(mine.latency_s), -group.max(-mine.bytes_per_s)};
  }
  return result;
}

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
