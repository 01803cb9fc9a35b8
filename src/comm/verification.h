// Buffers for measuring a collective, the patterns that fill them, and the values that it must produce. All
// of this is derived from the operation's row in the table of collectives.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace shardmark {

// Makes a call with zeroed buffers: the larger side has `numel` elements, rounded down to a multiple of the
// number of ranks if a side is sharded. The root is rank 0, and send_recv goes round the ring. `parts` is for
// all_to_all_v; each rank's side then has as many elements as its parts. Throws UsageError for an average of
// integers, and for in_place if the operation has no in-place form.
Call prepare(Communicator& comm, Collective what, int64_t numel, at::ScalarType dtype, ReduceOp op,
             bool in_place, std::shared_ptr<const specs::Parts> parts = nullptr);

// Small integers from -2 to 2, as a function of (rank, index, round). Ranks from 32 on hold mostly zeroes: in
// each octave of ranks (32-63, 64-127, ...) only 16 hold +-1 at any index. So all sums and partial sums over
// up to 2^17 ranks stay within 256, which every dtype represents exactly.
at::Tensor pattern(int rank, int64_t numel, at::ScalarType dtype, int64_t round);

// The reduction of the patterns of ranks 0 .. num_ranks-1.
at::Tensor reduced_pattern(int num_ranks, int64_t numel, at::ScalarType dtype, int64_t round, ReduceOp op);

// The value, on the CPU, that call.out must hold if every rank's `in` held its pattern. Undefined if this
// rank receives nothing.
at::Tensor expected(const Communicator& comm, const Call& call, int64_t round);

// Verify one operation: call fill(), run the operation, then num_wrong(). fill() sets `out` to a value that
// no result has, and `in` to this rank's pattern. num_wrong() compares every element with expected(),
// exactly. The one exception is an average over a number of ranks that is not a power of two; it may be
// rounded by 4 units of the dtype's precision.
void fill(const Communicator& comm, const Call& call, int64_t round);
int64_t num_wrong(const Communicator& comm, const Call& call, int64_t round);

ReduceOp reduce_op(const std::string& name);           // sum, average, min, max; "none" is sum
at::ScalarType element_type(const std::string& name);  // float32, float16, bfloat16, float64, int32

}  // namespace shardmark
