// Operations that share links, and the programs of a point.
#include "analysis/predict/stages.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shardmark {
namespace {

bool is_rooted_start(const strategies::Program& program, const strategies::Instruction& instruction) {
  return instruction.what == strategies::Instruction::What::start &&
         program.calls[static_cast<size_t>(instruction.index)].what != specs::Collective::send_recv &&
         program.calls[static_cast<size_t>(instruction.index)].root.has_value();
}

// Operations that start one after the other, from or to different roots, use different links at once: passed
// on around a ring, the busiest link carries all bytes but those of the root that has least. Balanced roots
// then take what an all-gather of their bytes takes.
void share_links(const strategies::Program& program, std::vector<double>& seconds) {
  const auto& instructions = program.instructions;
  for (size_t begin = 0, end = 0; begin < instructions.size(); begin = std::max(end, begin + 1)) {
    std::map<int64_t, double> bytes;  // by root
    double total = 0;
    std::vector<size_t> calls;
    // Collects a run of rooted operations that start one after the other. Instructions that neither compute
    // nor communicate do not end the run; anything else does.
    for (end = begin; end < instructions.size(); ++end) {
      const strategies::Instruction& instruction = instructions[end];
      if (!instruction.is_compute() && !instruction.is_communication()) continue;
      if (!is_rooted_start(program, instruction)) break;
      for (int64_t i = instruction.index; i < instruction.index + instruction.count; ++i) {
        const auto& call = program.calls[calls.emplace_back(i)];
        bytes[*call.root] += call.bytes;
        total += call.bytes;
      }
    }
    if (calls.empty()) continue;
    const int64_t ranks = program.calls[calls.front()].process_group.ranks;
    // A rank that is the root of none of them has 0 bytes, so the busiest link then carries everything.
    double least = static_cast<int64_t>(bytes.size()) < ranks ? 0 : total;
    for (const auto& [root, of_root] : bytes) least = std::min(least, of_root);
    for (const size_t call : calls)
      if (total > 0) seconds[call] *= 1 - least / total;
  }
}

}  // namespace

bool all_known(const std::vector<double>& seconds) {
  return std::all_of(seconds.begin(), seconds.end(), [](double one) { return std::isfinite(one); });
}

// Equal operations are asked for once.
std::vector<double> operation_times(const strategies::Program& program, const CollectiveCosts& costs,
                                    int64_t ranks_per_node) {
  std::map<std::tuple<specs::Collective, double, int64_t, int64_t>, double> known;
  std::vector<double> seconds;
  seconds.reserve(program.calls.size());
  for (const strategies::CollectiveCall& o : program.calls) {
    const auto [found, is_new] =
        known.try_emplace({o.what, o.bytes, o.process_group.ranks, o.process_group.stride}, 0);
    if (is_new) found->second = costs.time_s(o.what, o.bytes, span_of(o, ranks_per_node));
    seconds.push_back(found->second);
  }
  share_links(program, seconds);
  return seconds;
}

specs::Span span_of(const strategies::CollectiveCall& operation, int64_t ranks_per_node) {
  const auto& [ranks, stride] = operation.process_group;
  if (operation.what == specs::Collective::send_recv)  // two of a pipeline's; some lie on two nodes
    return {2, ranks_per_node > 0 && ranks * stride > ranks_per_node ? 2 : 1};
  if (ranks_per_node <= 0) return {ranks, 1};
  return specs::span_of(ranks, std::max<int64_t>(stride, 1), ranks_per_node);
}

OperationCounts operations_across(const Stages& stages, int64_t ranks_per_node) {
  OperationCounts counts = {};
  for (const strategies::Program& program : stages.programs)
    for (const strategies::CollectiveCall& o : program.calls)
      if (span_of(o, ranks_per_node).nodes > 1)
        counts[static_cast<size_t>(o.dimension)] += 1 / static_cast<double>(stages.programs.size());
  return counts;
}

std::vector<strategies::SimulatedRank> simulated(const Stages& stages, const ComputeTimes& whole) {
  std::vector<strategies::SimulatedRank> all;
  for (size_t stage = 0; stage < stages.programs.size(); ++stage)
    all.push_back({&stages.programs[stage], times_of_stage(whole, stages.steps[stage], stages.programs[stage],
                                                           stages.programs.front())});
  return all;
}

bool set_operations(std::vector<strategies::SimulatedRank>& simulated, const Stages& stages,
                    const CollectiveCosts& costs, int64_t ranks_per_node, double stretch) {
  bool is_known = true;
  for (size_t stage = 0; stage < simulated.size(); ++stage) {
    auto& seconds = simulated[stage].operation_s =
        operation_times(stages.programs[stage], costs, ranks_per_node);
    for (double& one : seconds) one *= stretch;
    // A node's operations share its network card. Within nodes they are taken not to slow each other down.
    simulated[stage].operation_link.clear();
    for (const strategies::CollectiveCall& call : stages.programs[stage].calls)
      simulated[stage].operation_link.push_back(span_of(call, ranks_per_node).nodes > 1 ? 1 : 0);
    is_known = is_known && all_known(seconds);
  }
  return is_known;
}

}  // namespace shardmark
