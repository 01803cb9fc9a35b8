// How long a collective takes, from a study's own collective points: latency and bandwidth fitted to each
// operation within a node and across nodes, times what the measured curve shows beside that.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/estimate.h"
#include "analysis/merged.h"
#include "laws/collective_law.h"
#include "laws/link.h"

namespace shardmark {

struct TimedCollective {
  std::string operation;
  double bytes = 0;  // as in CollectivePoint
  laws::Span span;
  Estimate time_s;
};

// alpha and beta of laws/collective_law.h: of the links of a node, or of a rank's share of the links across.
struct AlphaBeta {
  std::string operation;
  bool across_nodes = false;
  Estimate alpha_s;          // of one step
  Estimate beta_s_per_byte;  // 1 / bandwidth
  double deviation = 0;      // median |measured / fitted - 1|
  int64_t num_times = 0;
  std::string refused;  // why it could not be fitted; empty when it could
};

class CollectiveCosts {
 public:
  explicit CollectiveCosts(std::vector<TimedCollective> times);

  // Seconds of an operation. One that was not measured there takes the alpha and beta of the one whose
  // messages are most alike; a NaN where nothing was measured. 0 on one rank.
  double time_s(const std::string& operation, double bytes, laws::Span span) const;

  const std::vector<AlphaBeta>& fits() const { return fits_; }

  // Across nodes over another link instead: every rank has one of its own, and ranks of a node use theirs
  // together.
  CollectiveCosts over(const laws::Link& link) const;
  // With alpha and beta as a repetition of the study would give them.
  CollectiveCosts drawn(std::mt19937_64& random) const;

 private:
  std::vector<TimedCollective> times_;
  std::vector<AlphaBeta> fits_;
};

// The points of one setting (machine, transport) that may be used: float32 sums, not doubtful; the faster of
// in place and out of place.
std::vector<TimedCollective> timed_collectives(const std::vector<MergedPoint>& points,
                                               const std::string& machine, const std::string& transport);

}  // namespace shardmark
