// Goes through a program and adds up what starts.
#include "strategies/step_traffic.h"

namespace shardmark::strategies {

StepTraffic step_traffic(const Program& program) {
  StepTraffic traffic;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.what != Instruction::What::start) continue;
    PhaseTraffic& phase = instruction.part >= Part::update     ? traffic.update
                          : instruction.part == Part::backward ? traffic.backward
                                                               : traffic.forward;
    for (int64_t c = instruction.index; c < instruction.index + instruction.count; ++c) {
      const CollectiveCall& call = program.calls[static_cast<size_t>(c)];
      ++phase.num_operations;
      phase.bytes += call.ring_bytes();
    }
  }
  return traffic;
}

}  // namespace shardmark::strategies
