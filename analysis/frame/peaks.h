// How much of its device a step uses: against the data sheet (MFU), and against a matrix product.
#pragma once

#include "analysis/frame/merged.h"

namespace shardmark {

// Sets mfu, and of_matmul with the peak that it is taken against.
//
// Each start of the ranks measures a matrix product anew, with whatever else runs on the machine. So the best
// one of a study counts for all of its points of the same machine and precision; of a point that several
// studies measured, the median of theirs. Other studies of a report change nothing. A point is marked where
// the product before it reached less than 90 % of the best of all studies (its machine was not free), and
// where one of the two shares would be above 100 %: that share is then left out.
void find_utilization(std::vector<MergedPoint>& points);

// The share of a matrix product's FLOP/s. Attention counts by half, as a causal kernel computes it. Not a
// number where this program does not know the model, and above 100 %.
double matmul_share(const Point& point, const Measures& measures);

}  // namespace shardmark
