// The best layouts of a transformer over data x tensor x pipeline ranks, by the formulas of parallel3d.h.
#pragma once

#include "analysis/predict/parallel3d.h"
#include "analysis/predict/tables.h"

namespace shardmark {

// Rows: the fastest few that fit into memory_bytes a rank; where none fits or can be timed, the few that need
// least. A NaN: the memory is not known, and everything fits. No rows: no layout uses all ranks (the first
// note says why).
Table layouts_3d_table(const parallel3d::Job3d& job, int64_t ranks, double memory_bytes);

// Of each family of transformers among the predictions, on the most ranks that were asked for; its computing
// and links as measured. UsageError: no transformer was measured, or no layout uses all ranks.
std::vector<Table> layouts_3d_tables(const std::vector<PredictedPoint>& predicted,
                                     const std::vector<Predictor>& predictors, const PredictQuery& query);

}  // namespace shardmark
