// Walks through a program and adds up the calls that start.
#include "strategies/step_traffic.h"

#include <algorithm>

namespace shardmark::strategies {

StepTraffic step_traffic(const Program& program) {
  StepTraffic traffic;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.what != Instruction::What::start) continue;
    PhaseTraffic& phase = instruction.part >= StepPart::update     ? traffic.update
                          : instruction.part == StepPart::backward ? traffic.backward
                                                                   : traffic.forward;
    for (int64_t c = instruction.index; c < instruction.index + instruction.count; ++c) {
      const CollectiveCall& call = program.calls[static_cast<size_t>(c)];
      ++phase.num_operations;
      phase.bytes += call.ring_bytes();
    }
  }
  return traffic;
}

StepTraffic step_traffic(const std::vector<Program>& stages) {
  // The numbers of operations are those of one stage, so that those of the phases add up to
  // Cost::num_operations. Bytes are means over all stages.
  const auto starts_most = std::max_element(stages.begin(), stages.end(), [](const auto& a, const auto& b) {
    return a.calls.size() < b.calls.size();
  });
  if (starts_most == stages.end()) return {};
  StepTraffic traffic = step_traffic(*starts_most);
  if (stages.size() == 1) return traffic;
  constexpr PhaseTraffic StepTraffic::*kPhases[] = {&StepTraffic::forward, &StepTraffic::backward,
                                                    &StepTraffic::update};
  for (const auto phase : kPhases) (traffic.*phase).bytes = 0;
  for (const Program& program : stages) {
    const StepTraffic of_stage = step_traffic(program);
    for (const auto phase : kPhases)
      (traffic.*phase).bytes += (of_stage.*phase).bytes / static_cast<double>(stages.size());
  }
  return traffic;
}

}  // namespace shardmark::strategies
