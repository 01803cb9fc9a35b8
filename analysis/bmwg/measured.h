// What a study says of the draft's metrics (formulas.h), point by point.
#pragma once

#include <string>
#include <vector>

#include "analysis/bmwg/formulas.h"
#include "analysis/frame/merged.h"

namespace shardmark {

// What a user says beside the study.
struct BmwgQuery {
  bool is_named = false;                      // one of the tables was asked for
  double line_bytes_per_s = Measures::kNone;  // of all NICs of a rank, in one direction
};

// A collective that had its ranks to itself. Times are those of the slowest rank in each iteration.
struct BmwgCollective {
  const MergedPoint* merged;
  std::vector<double> times_s;  // of the iterations of all repeats
  double moved_bytes;           // S x algo_factor
  double rank_fairness;         // Jain's index of the ranks' own throughputs
  double variation;             // coefficient of variation of the repeats' medians; NaN: one repeat
  double fabric_bytes;          // S_fabric: of a rank, to other nodes; NaN: not known
  std::string algorithm;        // and whether it is verified
  double line_bytes_per_s;

  double busbw_at(double share) const;  // bytes/s that this share of the iterations does not exceed
  double mean_busbw() const;            // of all iterations together
  double efficiency() const { return busbw_at(0.5) / line_bytes_per_s; }
};
// Of the operations that have a factor in the draft, by the order of the points.
std::vector<BmwgCollective> bmwg_collectives(const std::vector<MergedPoint>& points, const BmwgQuery& query);

// A collective beside computing, or a training step whose parts were measured alone, too.
struct BmwgJct {
  const MergedPoint* merged;
  JctIteration mean;  // over the iterations of all repeats
  int64_t iterations;
};
std::vector<BmwgJct> bmwg_jcts(const std::vector<MergedPoint>& points, const BmwgQuery& query);

// Whether the load beside a collective is another one.
bool is_interference(const MergedPoint& merged);

}  // namespace shardmark
