// Goes through a program and records when each operation starts.
#include "strategies/step_traffic.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;

// Of the block that computes next; nothing is computed after the last one.
What next_phase(const Program& program, size_t position) {
  for (size_t i = position + 1; i < program.instructions.size(); ++i)
    if (program.instructions[i].is_compute()) return program.instructions[i].what;
  return What::update;
}

}  // namespace

// An operation that starts beside the last forward block is backward's: a strategy asks for it before the
// first backward block.
StepTraffic step_traffic(const Program& program) {
  StepTraffic traffic;
  What now = What::data;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.is_compute()) now = instruction.what;
    if (instruction.what != What::start) continue;
    const bool turns = now == What::forward && next_phase(program, i) == What::backward;
    PhaseTraffic& phase = now == What::update              ? traffic.update
                          : now == What::backward || turns ? traffic.backward
                                                           : traffic.forward;
    for (int64_t c = instruction.index; c < instruction.index + instruction.count; ++c) {
      const Call& call = program.calls[static_cast<size_t>(c)];
      ++phase.num_operations;
      phase.bytes += call.bytes * specs::ring_factor(call.what, call.team.ranks);
    }
  }
  return traffic;
}

}  // namespace shardmark::strategies
