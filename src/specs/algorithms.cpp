// Names the algorithm of each collective. comm/README.md describes them.
#include "specs/algorithms.h"

namespace shardmark::specs {

std::string mpi_algorithm(Collective what, int64_t bytes, int64_t ranks) {
  using enum Collective;
  const bool is_whole = is_short(bytes, ranks);
  switch (what) {
    case all_reduce:
      if (!is_whole) return "direct reduce-scatter, then direct all-gather";
      return ranks <= kFewRanks ? "whole messages to all, one round" : "binomial tree up and down";
    case broadcast:
      return is_whole ? "binomial tree" : "scatter by the root, then direct all-gather";
    case reduce:
      return is_whole ? "binomial tree" : "direct reduce-scatter among the others, then to the root";
    case reduce_scatter:
    case all_gather:
    case all_to_all:
    case all_to_all_v:
      return "direct exchange of pieces";
    case gather:
    case scatter:
      return "direct, the root with each rank";
    case send_recv:
      return "one message to the next rank";
  }
  return "";
}

}  // namespace shardmark::specs
