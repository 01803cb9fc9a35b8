// How long a collective takes by formula: latency of its steps and bytes over bandwidth, as a ring or as a
// tree, whichever is faster. The form of the model is the one that NCCL chooses algorithms by (its
// src/graph/tuning.cc); the bandwidth terms are those of Patarasuk and Yuan, JPDC 69(2), 2009.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/collectives.h"

namespace shardmark::specs {

// Where the ranks of an operation lie: n ranks on k nodes, equally many on each.
struct Span {
  int64_t ranks = 1;
  int64_t nodes = 1;
  double ranks_per_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
  bool operator==(const Span&) const = default;
};
// Of ranks that lie `stride` apart; ranks of a node are neighbours.
Span span_of(int64_t ranks, int64_t stride, int64_t ranks_per_node);

struct LinkCost {
  double alpha_s = 0;          // of one step
  double beta_s_per_byte = 0;  // of a byte that a rank sends
};

// across: a rank's share of the links of its node. Where ranks share one link, each has its part; an
// operation in which several ranks of a node take part uses their parts together.
struct Network {
  LinkCost node, across;
};

// T = node_steps x node.alpha + across_steps x across.alpha + bytes x max(node_factor x node.beta,
// across_factor x across.beta): of bandwidth the slower kind of link counts. Linear in alpha and beta for
// the one that does, so that they can be fitted. On one node across_steps and across_factor are 0,
// with one rank on each node node_steps and node_factor.
struct CollectiveTerms {
  double node_steps = 0, across_steps = 0;
  double node_factor = 0, across_factor = 0;
};

// The ways to do an operation: ring; tree, where there is one.
std::vector<CollectiveTerms> collective_terms(Collective operation, Span span);

double collective_s(const CollectiveTerms& terms, double bytes, const Network& network);
// Of the fastest way. 0 on one rank. bytes: payload, the larger of a rank's two sides.
double collective_s(Collective operation, double bytes, Span span, const Network& network);

}  // namespace shardmark::specs
