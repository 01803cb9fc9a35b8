// Latency and bandwidth of links, fitted to the times of a collective.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/estimate.h"
#include "analysis/stats/least_squares.h"
#include "specs/collective_cost.h"

namespace shardmark {

struct TimedCollective {
  specs::Collective operation = specs::Collective::all_reduce;
  double bytes = 0;  // as in CollectivePoint
  specs::Span span;
  Estimate time_s;
  bool across_nodes() const { return span.nodes > 1; }
};

// alpha and beta of specs/collective_cost.h: of the links of a node, or of a rank's share of the links
// across.
struct AlphaBeta {
  specs::Collective operation = specs::Collective::all_reduce;
  bool across_nodes = false;
  Estimate alpha_s;                    // of one step
  Estimate beta_s_per_byte;            // 1 / bandwidth
  double deviation = Measures::kNone;  // median |measured / fitted - 1|
  int64_t num_times = 0;               // 0: not fitted, but a given link
  std::string refused;                 // why it could not be fitted; empty when it could
  least_squares::Fit curve;            // its coefficients: alpha, beta
  specs::LinkCost cost() const { return {alpha_s.value, beta_s_per_byte.value}; }
};

// All times of one operation, within a node or across nodes. node: the links of a node, whose part is taken
// off times across nodes; nullptr where it is not known. Least squares of relative residuals, alpha and beta
// not below 0; ring or tree, and which link is the slower, as the fit itself says.
AlphaBeta fit_alpha_beta(const std::vector<TimedCollective>& times, const AlphaBeta* node);

}  // namespace shardmark
