// The time of a collective by the alpha-beta model: the latency of its steps, plus bytes over bandwidth, for
// a ring or a tree, whichever is faster. NCCL chooses its algorithms by a model of this form
// (src/graph/tuning.cc). The bandwidth terms are those of Patarasuk and Yuan, JPDC 69(2), 2009.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/collectives.h"

namespace shardmark::specs {

// Where the ranks of an operation are: n ranks on k nodes, the same number on each.
struct Span {
  int64_t ranks = 1;
  int64_t nodes = 1;
  double ranks_per_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
  bool operator==(const Span&) const = default;
};
// The span of ranks that are `stride` apart. Ranks of a node are consecutive.
Span span_of(int64_t ranks, int64_t stride, int64_t ranks_per_node);

struct LinkCost {
  double alpha_s = 0;          // latency of one step
  double beta_s_per_byte = 0;  // per byte that a rank sends
};

// `node` is the link inside a node. `across` is a rank's share of the links of its node: if ranks share a
// link, each has a part of it, and an operation with several ranks on a node uses all of their parts.
struct Network {
  LinkCost node, across;
};

// T = node_steps x node.alpha + across_steps x across.alpha + bytes x max(node_factor x node.beta,
// across_factor x across.beta): only the slower kind of link limits the bandwidth. T is linear in alpha and
// in the beta of that link, so that they can be fitted. On one node across_steps and across_factor are 0;
// with one rank per node node_steps and node_factor are.
struct CollectiveTerms {
  double node_steps = 0, across_steps = 0;
  double node_factor = 0, across_factor = 0;
};

// The terms of each algorithm for an operation: a ring, and a tree if there is one.
std::vector<CollectiveTerms> collective_terms(Collective operation, Span span);

double collective_s(const CollectiveTerms& terms, double bytes, const Network& network);
// The time of the fastest algorithm; 0 on one rank. `bytes` is the payload: the larger of a rank's input and
// output.
double collective_s(Collective operation, double bytes, Span span, const Network& network);

}  // namespace shardmark::specs
