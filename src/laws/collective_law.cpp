// Steps and factors of rings and trees.
#include "laws/collective_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardmark::laws {
namespace {

// Of a ring, in units of n - 1 steps; and bytes that a rank sends for one byte of payload, in units of
// (n-1)/n. A broadcast and a reduce pass the whole payload on; a pair exchanges it once.
struct Shape {
  double rounds;
  double factor;
  bool has_tree;
};

Shape shape_of(const std::string& operation, double n) {
  const double cut = (n - 1) / n;
  if (operation == "all_reduce") return {2, 2 * cut, true};
  if (operation == "broadcast" || operation == "reduce") return {1, 1, true};
  if (operation == "send_recv") return {1 / (n - 1), 1, false};
  return {1, cut, false};  // reduce_scatter, all_gather, all_to_all, gather, scatter
}

}  // namespace

Span span_of(int64_t ranks, int64_t stride, int64_t ranks_per_node) {
  const int64_t in_node = std::clamp<int64_t>(ranks_per_node / stride, 1, ranks);
  return {ranks, (ranks + in_node - 1) / in_node};
}

std::vector<CollectiveTerms> collective_terms(const std::string& operation, Span span) {
  if (span.ranks < 2) return {CollectiveTerms{}};
  const auto n = static_cast<double>(span.ranks), k = static_cast<double>(span.nodes);
  const Shape shape = shape_of(operation, n);
  const double across_factor = k > 1 ? 1 / span.ranks_per_node() : 0;
  const bool pair = operation == "send_recv";
  const double across = pair ? (k > 1 ? 1 : 0) : shape.rounds * (k - 1);
  const double node = pair ? 1 - across : shape.rounds * (n - k);
  const double within = n > k ? 1 : 0;  // one rank on each node: its links are idle
  std::vector<CollectiveTerms> terms = {{node, across, shape.factor * within, shape.factor * across_factor}};
  // Two binary trees that share the payload: log2 steps each way, and every byte is passed on once each way.
  if (shape.has_tree)
    terms.push_back({shape.rounds * std::ceil(std::log2(span.ranks_per_node())),
                     shape.rounds * std::ceil(std::log2(k)), shape.rounds * within,
                     shape.rounds * across_factor});
  return terms;
}

double collective_s(const CollectiveTerms& terms, double bytes, const Network& network) {
  const double latency =
      terms.node_steps * network.node.alpha_s + terms.across_steps * network.across.alpha_s;
  return latency + bytes * std::max(terms.node_factor * network.node.beta_s_per_byte,
                                    terms.across_factor * network.across.beta_s_per_byte);
}

double collective_s(const std::string& operation, double bytes, Span span, const Network& network) {
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveTerms& terms : collective_terms(operation, span))
    least = std::min(least, collective_s(terms, bytes, network));
  return least;
}

}  // namespace shardmark::laws
