// One number for all that a rank does in a step: programs of equal numbers are the same step.
#pragma once

#include <cstdint>

#include "strategies/program.h"

namespace shardmark::strategies {

// Hashes everything but names: calls with their memory, instructions, buffers, layouts, and how buckets are
// reduced. Go on with an earlier result by passing it as `hash`.
uint64_t program_hash(const Program& program, uint64_t hash);

}  // namespace shardmark::strategies
