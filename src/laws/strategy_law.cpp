// Ring factors.
#include "laws/strategy_law.h"

namespace shardmark::laws {

double ring_factor(const std::string& operation, int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  if (ranks == 1) return 0;
  if (operation == "all_reduce") return 2 * (n - 1) / n;
  if (operation == "gather" || operation == "scatter") return (n - 1) / (n * n);
  if (operation == "send_recv") return 1;
  return (n - 1) / n;  // reduce_scatter, all_gather, broadcast, reduce, all_to_all
}

}  // namespace shardmark::laws
