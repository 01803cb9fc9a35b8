// Programs as text.
#pragma once

#include <string>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// For example "start all_gather #12 of h.3, 4.0 MiB over 8 ranks, into parameter slot 1" or "backward of
// h.3".
std::string describe(const Program& program, const Instruction& instruction, const ModelTable& model);

// A whole step: the memory that it needs, a line for each instruction with the calls that are in flight
// meanwhile, and the totals.
std::string to_text(const Program& program, const StepInput& input);

}  // namespace shardmark::strategies
