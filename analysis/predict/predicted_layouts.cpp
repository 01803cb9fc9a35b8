// Which layouts are tried, and which are kept.
#include "analysis/predict/predicted_layouts.h"

#include <algorithm>
#include <set>

#include "analysis/known.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

constexpr size_t kMostFound = 8;

std::vector<int64_t> divisors(int64_t of, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= std::min(of, most); ++d)
    if (of % d == 0) all.push_back(d);
  return all;
}

struct Search {
  const MergedPoint& like;
  const Predictor& predictor;
  const PredictQuery& query;
  Cluster cluster;
  int64_t global_batch;
  LayoutSearch result{&like};

  void try_one(Point point) {
    const TrainingPoint& t = point.training;
    const int64_t of_micro_batches = point.data_ranks() * t.batch_size;
    if (of_micro_batches == 0 || global_batch % of_micro_batches != 0) return;
    point.training.accumulation = global_batch / of_micro_batches;
    if (!strategies::layout_impossible(point).empty()) return;
    if (t.accumulation < t.pipeline) return;  // a bubble of half the step and more
    ++result.num_tried;
    Prediction prediction = predictor.estimate(like, point, cluster);
    if (!prediction.unknown.empty()) {
      if (result.unknown.empty()) result.unknown = prediction.unknown;
      return;
    }
    ++result.num_known;
    const bool fits = !(prediction.memory_bytes > query.memory_bytes);
    if (fits) ++result.num_fit;
    result.found.push_back({&like, cluster, std::move(prediction), {}, fits, global_batch});
    if (result.found.size() > 4 * kMostFound) keep_best();
  }

  void keep_best() {
    const auto order = [](const PredictedPoint& one) {
      const Prediction& p = one.prediction;
      return std::pair(!one.fits, one.fits ? p.step_s.value : p.memory_bytes);
    };
    std::stable_sort(result.found.begin(), result.found.end(),
                     [&](const auto& a, const auto& b) { return order(a) < order(b); });
    if (result.found.size() > kMostFound)
      result.found.erase(result.found.begin() + kMostFound, result.found.end());
  }

  void try_schedules() {
    for (const PredictedPoint& one : std::vector<PredictedPoint>(result.found)) {
      Point point = one.prediction.point;
      if (point.training.pipeline == 1) continue;
      for (const char* text : {"interleaved(chunks=2)", "zero_bubble"}) {
        const Choice schedule = choice_from_text(text);
        point.training.schedule =
            resolve(schedule, strategies::pipeline_schedule(schedule.name).options, "pipeline schedule");
        try_one(point);
      }
    }
    keep_best();
  }
};

// With sequence parallelism where the model takes it: fewer activations, as many bytes.
void set_tensor(Point& point, int64_t tensor) {
  point.training.tensor = tensor;
  point.training.sequence_parallel = tensor > 1;
  if (tensor > 1 && !strategies::layout_impossible(point).empty()) point.training.sequence_parallel = false;
}

void try_all(Search& search, const Point& like, const std::vector<Choice>& strategies,
             const std::set<int64_t>& batch_sizes) {
  Point point = like;
  const auto table = known_table(like.training.model);
  for (const int64_t tensor : divisors(search.cluster.ranks_per_node, point.ranks))
    for (const int64_t pipeline : divisors(point.ranks / tensor, std::ssize(table->blocks)))
      for (const Choice& strategy : strategies)
        for (const int64_t batch : batch_sizes) {
          point.training.strategy = strategy;
          point.training.batch_size = batch;
          point.training.pipeline = pipeline;
          set_tensor(point, tensor);
          search.try_one(point);
        }
  search.keep_best();
}

}  // namespace

std::vector<LayoutSearch> search_layouts(const std::vector<PredictedPoint>& predicted,
                                         const std::vector<Predictor>& predictors,
                                         const PredictQuery& query) {
  std::vector<LayoutSearch> all;
  std::set<std::string> seen;
  for (const PredictedPoint& one : predicted) {
    const MergedPoint& like = *one.like;
    if (like.point.ranks_per_copy() > 1 || !seen.insert(like.family).second) continue;
    Point point = one.prediction.point;
    point.ranks = *std::max_element(query.ranks.begin(), query.ranks.end());
    std::set<int64_t> batch_sizes(query.batch_sizes.begin(), query.batch_sizes.end());
    if (batch_sizes.empty()) batch_sizes = {like.point.training.batch_size};
    std::vector<Choice> strategies = query.strategies;
    if (strategies.empty())
      for (const char* usual : {"ddp", "fsdp(shard=optimizer)", "fsdp"})
        strategies.push_back(strategy_from_text(usual));
    const int64_t global_batch = query.global_batch > 0
                                     ? query.global_batch
                                     : point.ranks * *batch_sizes.rbegin() * point.training.accumulation;
    Search search{like, *predictor_of(like, predictors), query, one.cluster, global_batch};
    try_all(search, point, strategies, batch_sizes);
    search.try_schedules();
    for (PredictedPoint& found : search.result.found)
      found.prediction = search.predictor.predict(like, found.prediction.point, one.cluster);
    all.push_back(std::move(search.result));
  }
  return all;
}

}  // namespace shardmark
