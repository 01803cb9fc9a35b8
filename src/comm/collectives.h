// The table of collectives: one row each. The workload, verification, bandwidth, reports and tests walk its rows.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardmark {

// What one rank's operation works on. numel: elements of the larger side; see each row for how a side is derived.
struct CollectiveCase {
  at::Tensor in;   // what the rank sends; the same storage as out when in place
  at::Tensor out;  // what it receives
  ReduceOp op = ReduceOp::sum;
};

struct CollectiveRow {
  const char* name;  // as in laws::collective_laws()
  // Buffers for `numel` elements on the larger side (rounded down to a multiple of ranks where a side is cut).
  CollectiveCase (*prepare)(Communicator& comm, int64_t numel, at::ScalarType dtype, ReduceOp op, bool in_place);
  Work (*run)(Communicator& comm, const CollectiveCase& buffers);
  // The value that out must hold afterwards (undefined tensor: this rank receives nothing), for `pattern`'s values.
  at::Tensor (*expected)(const Communicator& comm, const CollectiveCase& buffers, int64_t numel, int64_t round);
};

const std::vector<CollectiveRow>& collective_rows();
const CollectiveRow& collective_row(const std::string& name);

// Small integers that every dtype holds exactly, sums over ranks included; a function of (rank, index, round).
at::Tensor pattern(int rank, int64_t numel, at::ScalarType dtype, int64_t round);

}  // namespace shardmark
