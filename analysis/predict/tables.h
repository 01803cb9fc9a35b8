// The tables of predictions: steps on other ranks and networks, the best of them, and how far predictions of
// measured points are off.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "analysis/predict/predictor.h"
#include "analysis/stats/goodput.h"
#include "analysis/table/table.h"
#include "schema/throughput.h"

namespace shardmark {

// What `shardmark predict` was asked for; empty lists and zeros: as the study has it.
struct PredictQuery {
  std::vector<int64_t> ranks;
  int64_t ranks_per_node = 0;             // default: the most that was measured
  std::optional<specs::Link> network;     // across nodes; default: as measured
  std::optional<specs::Link> node_link;   // within a node; default: as measured
  std::vector<Choice> strategies;         // resolved; default: those measured, and the usual ones
  std::vector<int64_t> batch_sizes;       // per rank; default: those measured
  int64_t global_batch = 0;               // strong scaling: divided over the ranks instead
  double memory_bytes = Measures::kNone;  // of a rank; none: everything fits
  double price_per_gpu_hour = Measures::kNone;
  FailureQuery failures = {};
};

struct PredictedPoint {
  const MergedPoint* like;  // a measured point of the computing family
  Cluster cluster;
  Prediction prediction;
  Estimate one_rank_s;  // predicted step of the strategy on one rank with the same batch per rank (strong:
                        // the global batch)
  bool fits;
  int64_t global_batch = 0;  // that was asked for; 0: the batch per rank was

  int64_t nodes() const {
    return (prediction.point.ranks + cluster.ranks_per_node - 1) / cluster.ranks_per_node;
  }
};

Throughput throughput_of(const PredictedPoint& one);

// In the order of families, strategies, batches, ranks; what cannot be predicted says why. UsageError: a
// strategy or batch that no point can have.
std::vector<PredictedPoint> predict_all(const std::vector<MergedPoint>& points,
                                        const std::vector<Predictor>& predictors, const PredictQuery& query);

Table predictions_table(const std::vector<MergedPoint>& points, const std::vector<PredictedPoint>& predicted,
                        const PredictQuery& query);
// For each family and number of ranks the point that fits and has the highest throughput.
using BestPoints = std::map<std::pair<const MergedPoint*, int64_t>, const PredictedPoint*>;
BestPoints best_points(const std::vector<PredictedPoint>& predicted);
// The goodput of these points. UsageError: no checkpoint was timed.
std::vector<GoodputRow> predicted_goodput(const std::vector<StudyData>& studies,
                                          const std::vector<MergedPoint>& points, const BestPoints& best,
                                          const FailureQuery& query);
// Its notes say why others have no row.
Table best_table(const std::vector<MergedPoint>& points, const std::vector<PredictedPoint>& predicted,
                 const PredictQuery& query);
// A simulated step of each prediction, named by strategy, ranks and number, as a file for Perfetto: a name
// without its ending, and the text.
std::vector<std::pair<std::string, std::string>> predicted_traces(
    const std::vector<PredictedPoint>& predicted);
Table held_out_table(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors);

}  // namespace shardmark
