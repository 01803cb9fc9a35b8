// Every point that a query asks for.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/frame/groups.h"
#include "analysis/frame/known.h"
#include "analysis/predict/tables.h"
#include "base/error.h"

namespace shardmark {
namespace {

// The points that predictions of a family start from.
struct Family {
  const MergedPoint* like = nullptr;
  Point point;  // of `like`, resolved
  const Predictor* predictor = nullptr;
  std::set<int64_t> batch_sizes;
  std::vector<Choice> strategies;
  int64_t ranks_per_node = 1;
};

void add_strategy(std::vector<Choice>& strategies, const Choice& strategy) {
  const auto same = [&](const Choice& one) { return to_text(one) == to_text(strategy); };
  if (std::none_of(strategies.begin(), strategies.end(), same)) strategies.push_back(strategy);
}

bool can_be_predicted(const Choice& strategy) {
  const strategies::Traits& traits = strategies::traits_of(strategy.name);
  return traits.communicates && !traits.is_resolved_at_run_time;
}

// The largest number of any point on the same machine and transport. How many ranks share a node is a
// property of the cluster, not of a model that happened to be measured on one rank.
int64_t most_ranks_per_node(const std::vector<MergedPoint>& points, const MergedPoint& like) {
  int64_t most = 1;
  for (const MergedPoint& merged : points)
    if (merged.machine == like.machine && merged.transport == like.transport)
      most = std::max(most, merged.ranks_per_node);
  return most;
}

std::vector<Family> families_of(const std::vector<MergedPoint>& points,
                                const std::vector<Predictor>& predictors, const PredictQuery& query) {
  std::vector<Family> families;
  const auto is_usable = [](const auto& one) { return !is_unreliable(one) && known_point(one.point); };
  for (const PointList& measured : groups_of(training_points(points, is_usable), &MergedPoint::family)) {
    const MergedPoint& first = *measured.front();
    Family& family =
        families.emplace_back(&first, *known_point(first.point), predictor_of(first, predictors));
    for (const MergedPoint* merged : measured) {
      const Choice strategy = known_point(merged->point)->training.strategy;
      family.batch_sizes.insert(merged->point.training.batch_size);
      if (can_be_predicted(strategy)) add_strategy(family.strategies, strategy);
    }
    family.ranks_per_node =
        query.ranks_per_node > 0 ? query.ranks_per_node : most_ranks_per_node(points, *family.like);
    for (const char* usual : {"ddp", "fsdp", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "zero3"})
      add_strategy(family.strategies, strategy_from_text(usual));
    if (family.ranks_per_node > 1)
      add_strategy(family.strategies,
                   strategy_from_text("fsdp(group=" + std::to_string(family.ranks_per_node) + ")"));
    if (!query.strategies.empty()) family.strategies = query.strategies;
    if (!query.batch_sizes.empty()) family.batch_sizes = {query.batch_sizes.begin(), query.batch_sizes.end()};
  }
  return families;
}

Point whole_on_one_rank(Point point) {
  point.ranks = 1;
  TrainingPoint& t = point.training;
  t.tensor = t.context = t.expert = t.pipeline = 1;
  t.dispatch = kDispatchCopies;
  t.sequence_parallel = false;
  t.schedule = TrainingPoint().schedule;
  return point;
}

// The series of one strategy and batch over all numbers of ranks.
void add_series(std::vector<PredictedPoint>& all, const Family& family, Point point,
                const PredictQuery& query) {
  const Cluster cluster{family.ranks_per_node, query.network, query.node_link};
  // Efficiency is held against one rank without any layout: with the same batch per rank, or in strong
  // scaling with the whole global batch.
  Point alone = whole_on_one_rank(point);
  if (query.global_batch > 0) alone.training.batch_size = query.global_batch / point.training.accumulation;
  const Estimate one_rank_s = family.predictor->predict(*family.like, alone, cluster).step_s;
  for (const int64_t ranks : query.ranks) {
    point.ranks = ranks;
    // The global batch is shared out over data-parallel ranks and micro-batches. `parts` is 0 if the ranks
    // do not divide into copies of the model; then predict() says why the point is impossible.
    const int64_t parts = point.data_ranks() * point.training.accumulation;
    Prediction prediction{point};
    if (parts == 0 || query.global_batch % parts == 0) {
      if (query.global_batch > 0 && parts > 0) point.training.batch_size = query.global_batch / parts;
      prediction = family.predictor->predict(*family.like, point, cluster);
    } else {
      prediction.unknown = fmt::format("the ranks do not divide the global batch of {}", query.global_batch);
    }
    const bool fits = !(prediction.memory_bytes > query.memory_bytes);
    all.push_back({family.like, cluster, std::move(prediction), one_rank_s, fits, query.global_batch});
  }
}

}  // namespace

std::vector<PredictedPoint> predict_all(const std::vector<MergedPoint>& points,
                                        const std::vector<Predictor>& predictors, const PredictQuery& query) {
  std::vector<PredictedPoint> all;
  for (const Family& family : families_of(points, predictors, query)) {
    for (const Choice& strategy : family.strategies)
      for (const int64_t batch : family.batch_sizes) {
        Point point = family.point;
        point.training.strategy = strategy;
        point.training.chosen.clear();
        point.training.batch_size = batch;
        add_series(all, family, point, query);
        if (query.global_batch > 0) break;  // the batch follows from the ranks
      }
  }
  return all;
}

}  // namespace shardmark
