// Scaling: series of points that differ only in ranks, and the numbers that rate them. Definitions:
// analysis/README.md.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/stats/fit.h"

namespace shardmark {

// What a series grows over. node: ranks that share one node; nodes: whole nodes with equally many ranks each;
// all: ranks, wherever they are (in a study over several nodes, or one that does not say where its ranks
// were).
enum class Span { node, nodes, all };

struct ScalingPoint {
  const MergedPoint* merged = nullptr;
  double units = 0;     // ranks, or nodes in a series over nodes
  Estimate efficiency;  // against the series' base; the base itself has no interval
  Estimate
      speed_up;  // over one unit: strong T(1) / T(n), weak n T(1) / T(n); only where one unit was measured
  double karp_flatt = Measures::kNone;  // strong scaling where one unit was measured
};

// Where efficiency falls below 80 %, in ranks. Measured: between the counts low and high. From a fit: with
// its interval; infinite where that lies so far beyond what was measured that no curve is trusted.
struct Crossing {
  static constexpr double kEfficiency = 0.8;
  static constexpr double kReach = 8;  // times the largest count measured
  Estimate ranks;
  std::string from;  // "measured", or the law; empty when nothing can be said
};

// Points of one strategy that differ in ranks alone; at least two. The first is the base of efficiency. Never
// of `single`, whose ranks do not work together.
struct ScalingSeries {
  Scaling scaling = Scaling::weak;
  Span span = Span::node;
  int64_t ranks_per_unit = 1;  // more than 1 only over nodes
  int64_t fixed_batch = 0;     // weak: per rank; strong: the global batch
  std::vector<ScalingPoint> points;
  std::vector<ScalingFit> fits;  // strong: Amdahl, USL; weak: Gustafson, USL; refused ones with their reason
  Crossing below_80;
};

// Weak ones first. They point into `points`.
std::vector<ScalingSeries> scaling_series(const std::vector<MergedPoint>& points);
// The same without `fits` and `below_80`, which take most of the time.
std::vector<ScalingSeries> unfitted_series(const std::vector<MergedPoint>& points);

// Efficiency of each point that is not a base. A point of several series (over ranks, over nodes) is rated in
// the one whose base has the fewest ranks, so that points of one column have one base wherever they can.
// By scaling and point; points into the series.
struct Rated {
  const ScalingPoint* point = nullptr;
  int64_t base_ranks = 0;
};
using Efficiencies = std::map<std::pair<Scaling, const MergedPoint*>, Rated>;
Efficiencies efficiencies_of(const std::vector<ScalingSeries>& scaling);

// The serial fraction that explains a speed-up over one unit: (1/S - 1/n) / (1 - 1/n); NaN for n = 1.
// Source: Karp and Flatt, Measuring parallel processor performance, CACM 33(5), 1990.
double karp_flatt(double speedup, double units);

std::string batch_text(const ScalingSeries& series);  // "batch 4 per rank", "global batch 16"
std::string unit_text(const ScalingSeries& series);   // "ranks of one node", "nodes of 8 ranks", "ranks"
std::string_view to_text(Scaling scaling);            // "weak", "strong"

}  // namespace shardmark
