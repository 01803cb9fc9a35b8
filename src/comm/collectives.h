// The table of collectives: one row each. The workload, verification, bandwidth, reports and tests walk its
// rows.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardmark {

// What one rank's operation works on. Roots are rank 0; send_recv goes round the ring.
struct CollectiveCase {
  at::Tensor
      in;  // what the rank sends; shares memory with out when in place; undefined where a rank sends nothing
  at::Tensor out;  // what it receives; undefined where a rank receives nothing
  ReduceOp op = ReduceOp::sum;
};

struct CollectiveRow {
  const char* name;  // as in laws::collective_laws()
  // busbw / algbw for this many ranks. Source: nccl-tests, doc/PERFORMANCE.md and the getBw functions of its
  // sources.
  double (*busbw_factor)(int ranks);
  // Buffers for `numel` elements on the larger side (rounded down to a multiple of ranks where a side is
  // cut), zeroed.
  CollectiveCase (*prepare)(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op,
                            bool in_place);
  Work (*run)(Communicator& comm, const CollectiveCase& buffers);
  // The value that out must hold afterwards, on the CPU, where all ranks' `in` held their `pattern`
  // (undefined: this rank receives nothing).
  at::Tensor (*expected)(const Communicator& comm, const CollectiveCase& buffers, int64_t round);
};

const std::vector<CollectiveRow>& collective_rows();
const CollectiveRow& collective_row(const std::string& name);  // UsageError lists the known ones

// Small integers, from -2 to 2, as a function of (rank, index, round). Ranks from 32 on hold mostly zeros, 16
// ranks of each octave a +-1 at any index, so that sums and partial sums over 2^17 ranks stay within 256:
// exact in every dtype.
at::Tensor pattern(int rank, int64_t numel, at::ScalarType dtype, int64_t round);

// Verification of one operation: fill, run, count. `out` is filled with a value that no result has, then `in`
// with this rank's pattern. num_wrong compares every element with `expected`, exactly; only an average over
// ranks that are no power of two may be rounded, by 4 units of the dtype's precision.
void fill(const Communicator& comm, const CollectiveCase& buffers, int64_t round);
int64_t num_wrong(const CollectiveRow& row, const Communicator& comm, const CollectiveCase& buffers,
                  int64_t round);

ReduceOp reduce_op(const std::string& name);           // sum, average, min, max; "none" is sum
at::ScalarType element_type(const std::string& name);  // float32, float16, bfloat16, float64, int32

}  // namespace shardmark
