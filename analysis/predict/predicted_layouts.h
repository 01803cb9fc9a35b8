// The best ways to lay a training out over tensor, pipeline, expert and data-parallel ranks, by simulation.
#pragma once

#include <optional>

#include "analysis/predict/tables.h"

namespace shardmark {

// Every way to use the most ranks that were asked for that holds the global batch: tensor-parallel ranks
// within a node (with sequence parallelism where the model can), stages of a pipeline with at least as many
// micro-batches, each strategy and micro-batch. First each pipeline as 1f1b; then the fastest layouts that
// fit under the other schedules, of which the fastest is kept. The result is a shortlist to measure for each
// family of whole models, the fastest first; where nothing fits, those that need least.
struct LayoutSearch {
  const MergedPoint* like;
  int64_t ranks = 0, global_batch = 0;
  int64_t num_tried = 0, num_known = 0, num_fit = 0;
  std::string unknown = {};                // why the first of the others is not known
  std::vector<PredictedPoint> found = {};  // the shortlist (shortlist.h)
  std::string growth = {};                 // with nodes: what steps count in, or why nothing
  // If nothing was tried, what could be: the least larger global batch, or the largest smaller micro-batch
  // with the global batch that was asked for.
  std::optional<Point> larger = {}, smaller_micro_batch = {};
};
std::vector<LayoutSearch> search_layouts(const std::vector<PredictedPoint>& predicted,
                                         const std::vector<Predictor>& predictors, const PredictQuery& query);

// The shortlist of these as a suite for launch: each layout is measured in several starts of the ranks, so
// that the report can rank them. UsageError: nothing fits.
std::string shortlist_suite(const std::vector<LayoutSearch>& searches, const PredictQuery& query);

Table predicted_layouts_table(const LayoutSearch& search, const PredictQuery& query);
// A table for each search that found any. UsageError: no layout uses all ranks, or none can be predicted.
std::vector<Table> predicted_layouts_tables(const std::vector<LayoutSearch>& searches,
                                            const PredictQuery& query);

}  // namespace shardmark
