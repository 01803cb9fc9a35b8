// Walks a program and notes when each operation starts.
#include "laws/step_traffic.h"

#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

using What = Moment::What;

// Of the block that computes next; nothing is computed after the last one.
What next_phase(const Program& program, size_t moment) {
  for (size_t i = moment + 1; i < program.moments.size(); ++i) {
    const What what = program.moments[i].what;
    if (what != What::start && what != What::wait) return what;
  }
  return What::update;
}

}  // namespace

// An operation that starts beside the last forward block is backward's: a strategy asks for it before the
// first backward block.
StepTraffic step_traffic(const Program& program) {
  StepTraffic traffic;
  What now = What::data;
  for (size_t i = 0; i < program.moments.size(); ++i) {
    const Moment& moment = program.moments[i];
    if (moment.what == What::wait) continue;
    if (moment.what != What::start) {
      now = moment.what;
      continue;
    }
    const bool turns = now == What::forward && next_phase(program, i) == What::backward;
    PhaseTraffic& phase = now == What::update              ? traffic.update
                          : now == What::backward || turns ? traffic.backward
                                                           : traffic.forward;
    const StartedOperation& operation = program.operations[static_cast<size_t>(moment.index)];
    ++phase.num_operations;
    phase.bytes += operation.bytes * ring_factor(operation.name, operation.ranks);
  }
  return traffic;
}

}  // namespace shardmark::laws
