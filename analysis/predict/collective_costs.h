// How long a collective takes, from a study's own collective points: latency and bandwidth fitted to each
// operation within a node and across nodes, times what the measured curve shows beside that. Messages of
// different sizes go by different protocols (eager, rendezvous, several chunks), which no two numbers
// describe.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/predict/alpha_beta.h"
#include "specs/link.h"

namespace shardmark {

// What a time of CollectiveCosts comes from.
struct CollectiveBasis {
  specs::Collective operation;  // the measured one; another where that one was not measured
  specs::Span span;             // the nearest one measured
  bool within_sizes = false;    // the size lies between measured ones (or is one)
};

class CollectiveCosts {
 public:
  explicit CollectiveCosts(const std::vector<TimedCollective>& times);

  // Seconds of an operation: its cost model, times measured / modelled of the nearest measured span at
  // this size (between measured sizes interpolated over log(bytes), beyond them as at the last). So a
  // measured point has its measured time. An operation that was not measured there takes all of this from the
  // one whose messages are most alike; a NaN where nothing was measured. 0 on one rank.
  double time_s(specs::Collective operation, double bytes, specs::Span span) const;
  // Nothing where time_s is not measured but a link's, or a NaN.
  std::optional<CollectiveBasis> basis(specs::Collective operation, double bytes, specs::Span span) const;

  const std::vector<AlphaBeta>& fits() const { return fits_; }

  // Other links across nodes, or within a node: every rank has one of its own, and ranks of a node use theirs
  // together.
  CollectiveCosts over(const specs::Link& link) const { return replaced(link, true); }
  CollectiveCosts within(const specs::Link& link) const { return replaced(link, false); }
  // With alpha and beta as a repetition of the study would give them.
  CollectiveCosts drawn(std::mt19937_64& random) const;

 private:
  // Measured times of an operation on one span, as log(measured / modelled) by log(bytes).
  struct Curve {
    specs::Collective operation = specs::Collective::all_reduce;
    specs::Span span;
    std::map<double, double> deviations;
  };
  CollectiveCosts replaced(const specs::Link& link, bool across_nodes) const;
  const AlphaBeta* fit_for(specs::Collective operation, bool across_nodes) const;
  const Curve* curve_for(specs::Collective operation, specs::Span span) const;
  std::optional<double> model_s(specs::Collective operation, double bytes, specs::Span span) const;
  void add_fits(const std::vector<TimedCollective>& times, bool across_nodes);

  std::vector<AlphaBeta> fits_;
  std::vector<Curve> curves_;
};

// The points of one setting (machine, transport) that may be used: float32 sums, not unreliable, with as many
// ranks on each node. Each operation has one series: the one with most points, in place if there are as many.
std::vector<TimedCollective> timed_collectives(const std::vector<MergedPoint>& points,
                                               const std::string& machine, const std::string& transport);

}  // namespace shardmark
