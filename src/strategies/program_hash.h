// A hash of everything that a rank does in a step. Programs with equal hashes are the same step.
#pragma once

#include <cstdint>

#include "strategies/program.h"

namespace shardmark::strategies {

// Hashes calls with their memory, instructions, buffers, layouts, and the reduction of buckets, but no names.
// To hash several programs together, pass the result of one as the start (`hash`) of the next.
uint64_t program_hash(const Program& program, uint64_t hash);

}  // namespace shardmark::strategies
