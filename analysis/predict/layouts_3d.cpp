// Jobs for the formulas of parallel3d.h, from a study.
#include "analysis/predict/layouts_3d.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "specs/collectives.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

// Forward and backward of one micro-batch by the whole model; nothing where no point shows it.
std::optional<double> compute_s(const Predictor& predictor, const PredictedPoint& one) {
  Point alone = one.prediction.point;
  alone.ranks = 1;
  alone.training.strategy = {"single", {}};
  alone.training.batch_size = one.like->point.training.batch_size;
  alone.training.accumulation = 1;
  const Prediction prediction = predictor.predict(*one.like, alone, {one.cluster.ranks_per_node, {}});
  if (!prediction.unknown.empty()) return std::nullopt;
  return prediction.parts.step_s - prediction.times.update_s;
}

auto operations(const Predictor& predictor, const Cluster& cluster) {
  return [costs = predictor.collectives_on(cluster)](specs::Collective operation, double bytes,
                                                     specs::Span span) {
    return costs.time_s(operation, bytes, span);
  };
}

bool is_transformer(const MergedPoint& merged) {
  return merged.point.training.model.name.starts_with("gpt2");
}

}  // namespace

std::vector<Table> layouts_3d_tables(const std::vector<PredictedPoint>& predicted,
                                     const std::vector<Predictor>& predictors, const PredictQuery& query) {
  std::vector<Table> tables;
  std::set<const MergedPoint*> seen;
  for (const PredictedPoint& one : predicted) {
    const MergedPoint& like = *one.like;
    if (!is_transformer(like) || !seen.insert(&like).second) continue;
    const Predictor& predictor = *predictor_of(like, predictors);
    const auto seconds = compute_s(predictor, one);
    if (!seconds) continue;
    const TrainingPoint& t = one.prediction.point.training;
    const int64_t ranks = *std::max_element(query.ranks.begin(), query.ranks.end());
    parallel3d::Job3d job = parallel3d::job_3d(t.model);
    job.micro_batch = like.point.training.batch_size;
    job.global_batch = query.global_batch > 0 ? query.global_batch : ranks * job.micro_batch * t.accumulation;
    job.recompute = t.recompute == 1;
    job.bytes = specs::element_bytes(t.precision, t.reduce_dtype);
    job.optimizer_elements =
        specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options);
    job.compute_s = *seconds;
    job.ranks_per_node = one.cluster.ranks_per_node;
    job.operation_s = operations(predictor, one.cluster);
    tables.push_back(layouts_3d_table(job, ranks, query.memory_bytes));
    if (tables.back().rows.empty()) throw UsageError("--layouts: " + tables.back().notes.front());
    if (tables.size() > 1) tables.back().key += "_" + std::to_string(tables.size());
    auto& notes = tables.back().notes;
    notes.insert(notes.begin(), "Of " + to_text(t.model) + " in " + t.precision + ".");
  }
  if (tables.empty())
    throw UsageError(
        "--layouts: no training point of gpt2 or one of its sizes has the time of its computing; only "
        "transformers have such layouts");
  return tables;
}

}  // namespace shardmark
