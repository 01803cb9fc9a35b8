// Scaling: series of points that differ only in ranks, and the numbers that rate them. Definitions:
// analysis/README.md.
#pragma once

#include <vector>

#include "analysis/merged.h"

namespace shardmark {

// weak: the batch per rank stays the same; strong: the global batch does.
enum class Scaling { weak, strong };

// Points of one strategy, ordered by ranks; at least two. Never of `single`, whose ranks do not work
// together.
using ScalingSeries = std::vector<const MergedPoint*>;

std::vector<ScalingSeries> scaling_series(const std::vector<MergedPoint>& points, Scaling scaling);

double weak_efficiency(double base_step_s, double step_s);
double strong_efficiency(int64_t base_ranks, double base_step_s, int64_t ranks, double step_s);

// The serial fraction that explains a speed-up over one rank: (1/S - 1/n) / (1 - 1/n); NaN for n = 1.
// Source: Karp and Flatt, Measuring parallel processor performance, CACM 33(5), 1990.
double karp_flatt(double speedup, int64_t ranks);

}  // namespace shardmark
