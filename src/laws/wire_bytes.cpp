// See wire_bytes.h; tests/cli/wire_bytes.sh compares with what MPI counts.
#include "laws/wire_bytes.h"

#include "laws/strategy_law.h"

namespace shardmark::laws {

double wire_bytes(const StartedOperation& operation) {
  const auto n = static_cast<double>(operation.ranks);
  const bool whole = is_short(static_cast<int64_t>(operation.bytes), operation.ranks);
  const double ring = operation.bytes * ring_factor(operation.name, operation.ranks);
  if (operation.ranks < 2) return 0;
  if (operation.name == "all_reduce" && whole && operation.ranks <= kFewRanks)
    return (n - 1) * operation.bytes;
  if (operation.name == "reduce" && !whole) return ring * (n + 1) / n;
  return ring;
}

double wire_bytes(const Program& program) {
  double bytes = 0;
  for (const StartedOperation& operation : program.operations) bytes += wire_bytes(operation);
  return bytes;
}

}  // namespace shardmark::laws
