// Why points that were asked for are not among the predictions.
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/tables.h"

namespace shardmark {

// "4 ... 64 ranks (30 points, such as ddp with batch 4): no link between nodes was measured; give --network":
// a line for each reason why points have no prediction.
std::vector<std::string> why_unknown(const std::vector<PredictedPoint>& predicted);
// The same of numbers of ranks that have no best point, also where nothing fits.
std::vector<std::string> why_none_is_best(const std::vector<PredictedPoint>& predicted,
                                          const BestPoints& best, const PredictQuery& query);

// Training points of the studies that predictions do not use, a line for each reason: "4 training points
// carry warnings (uncertain): ...".
std::vector<std::string> why_unused(const std::vector<MergedPoint>& points);

}  // namespace shardmark
