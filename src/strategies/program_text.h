// Programs as people read them.
#pragma once

#include <string>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// "start all_gather #12 of h.3, 4.0 MiB over 8 ranks, into parameter slot 1", "backward of h.3"
std::string describe(const Program& program, const Instruction& instruction, const ModelTable& model);

// All of a step: the memory that it needs, what it does, a line each with what is in flight meanwhile, and
// the sums.
std::string to_text(const Program& program, const StepInput& input);

}  // namespace shardmark::strategies
