// What a collective is measured and verified with: buffers, patterns that fill them, and the values that must
// come out. All of it follows from the operation's row in the table of collectives.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace shardmark {

// A call with zeroed buffers: `numel` elements on the larger side, rounded down to a multiple of the ranks
// where a side is cut. Roots are rank 0, send_recv goes round the ring. UsageError: an average of integers;
// in place where the operation has no such form. parts: of all_to_all_v, of `numel` elements each rank.
Call prepare(Communicator& comm, Collective what, int64_t numel, at::ScalarType dtype, ReduceOp op,
             bool in_place, std::shared_ptr<const specs::Parts> parts = nullptr);

// Small integers, from -2 to 2, as a function of (rank, index, round). Ranks from 32 on hold mostly zeros, 16
// ranks of each octave a +-1 at any index, so that sums and partial sums over 2^17 ranks stay within 256:
// exact in every dtype.
at::Tensor pattern(int rank, int64_t numel, at::ScalarType dtype, int64_t round);

// The reduction over ranks 0 .. num_ranks-1 of their patterns.
at::Tensor reduced_pattern(int num_ranks, int64_t numel, at::ScalarType dtype, int64_t round, ReduceOp op);

// The value that call.out must hold afterwards, on the CPU, where all ranks' `in` held their pattern;
// undefined: this rank receives nothing.
at::Tensor expected(const Communicator& comm, const Call& call, int64_t round);

// Verification of one operation: fill, start, count. `out` is filled with a value that no result has, then
// `in` with this rank's pattern. num_wrong compares every element with `expected`, exactly; only an average
// over ranks that are no power of two may be rounded, by 4 units of the dtype's precision.
void fill(const Communicator& comm, const Call& call, int64_t round);
int64_t num_wrong(const Communicator& comm, const Call& call, int64_t round);

ReduceOp reduce_op(const std::string& name);           // sum, average, min, max; "none" is sum
at::ScalarType element_type(const std::string& name);  // float32, float16, bfloat16, float64, int32

}  // namespace shardmark
