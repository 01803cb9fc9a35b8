// Counts the steps of rings and trees, and the factors of their bandwidth terms.
#include "specs/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardmark::specs {

Span span_of(int64_t ranks, int64_t stride, int64_t ranks_per_node) {
  const int64_t in_node = std::clamp<int64_t>(ranks_per_node / stride, 1, ranks);
  return {ranks, (ranks + in_node - 1) / in_node};
}

std::vector<CollectiveTerms> collective_terms(Collective operation, Span span) {
  if (span.ranks < 2) return {CollectiveTerms{}};
  const CollectiveRow& row = collective(operation);
  const auto n = static_cast<double>(span.ranks), k = static_cast<double>(span.nodes);
  // A ring passes through all ranks of a node before it goes on to the next node. A round has n - 1 steps:
  // k - 1 of them go between nodes, and n - k stay inside. What crosses between nodes is
  // spread over the links of all ranks of a node, so that each link carries 1 / (ranks per node) of it.
  const double across_factor = k > 1 ? 1 / span.ranks_per_node() : 0;
  const bool pair = row.rounds == 0;
  const double across = pair ? (k > 1 ? 1 : 0) : row.rounds * (k - 1);
  const double node = pair ? 1 - across : row.rounds * (n - k);
  const double within = n > k ? 1 : 0;  // with one rank per node, the links inside nodes are idle
  const double factor = row.busbw.of(n);
  std::vector<CollectiveTerms> terms = {{node, across, factor * within, factor * across_factor}};
  // A double binary tree: two trees share the payload. A step goes through log2 levels each way, and every
  // byte is passed on once each way.
  if (row.has_tree)
    terms.push_back({row.rounds * std::ceil(std::log2(span.ranks_per_node())),
                     row.rounds * std::ceil(std::log2(k)), row.rounds * within, row.rounds * across_factor});
  return terms;
}

double collective_s(const CollectiveTerms& terms, double bytes, const Network& network) {
  const double latency =
      terms.node_steps * network.node.alpha_s + terms.across_steps * network.across.alpha_s;
  return latency + bytes * std::max(terms.node_factor * network.node.beta_s_per_byte,
                                    terms.across_factor * network.across.beta_s_per_byte);
}

double collective_s(Collective operation, double bytes, Span span, const Network& network) {
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveTerms& terms : collective_terms(operation, span))
    least = std::min(least, collective_s(terms, bytes, network));
  return least;
}

}  // namespace shardmark::specs
