// Which layouts are tried, and which are kept.
#include "analysis/predict/predicted_layouts.h"

#include <algorithm>
#include <set>

#include "analysis/frame/known.h"
#include "analysis/predict/shortlist.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

// Kept while others are tried: as many as any shortlist has.
constexpr size_t kMostKept = kWithoutGrowth;

std::vector<int64_t> divisors(int64_t of, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= std::min(of, most); ++d)
    if (of % d == 0) all.push_back(d);
  return all;
}

// Divides the global batch into micro-batches; whether that comes out even, with as many micro-batches as
// stages (fewer are a bubble of half the step and more).
bool divide_into_micro_batches(Point& point, int64_t global_batch) {
  TrainingPoint& t = point.training;
  const int64_t of_micro_batches = point.data_ranks() * t.batch_size;
  if (of_micro_batches == 0 || global_batch % of_micro_batches != 0) return false;
  t.accumulation = global_batch / of_micro_batches;
  return t.accumulation >= t.pipeline;
}

struct Search {
  const MergedPoint& like;
  const Predictor& predictor;
  const PredictQuery& query;
  Cluster cluster;
  int64_t global_batch;
  LayoutSearch result{&like};
  std::optional<PredictedPoint> of_rule = {};  // that fits

  // Predicts one layout and keeps it if it may be among the best. The choice of the rule of thumb is kept
  // apart, because a slow prediction would drop it. Predictions have no interval here, which would take
  // most of the time; the shortlist gets its intervals at the end.
  void try_one(Point point) {
    if (!divide_into_micro_batches(point, global_batch)) return note_larger(point);
    if (!strategies::layout_impossible(point).empty()) return;
    ++result.num_tried;
    Prediction prediction = predictor.estimate(like, point, cluster);
    if (!prediction.unknown.empty()) {
      if (result.unknown.empty()) result.unknown = prediction.unknown;
      return;
    }
    ++result.num_known;
    const bool fits = !(prediction.memory_bytes > query.memory_bytes);
    if (fits) ++result.num_fit;
    PredictedPoint one{&like, cluster, std::move(prediction), {}, fits, global_batch};
    if (fits && (!of_rule || is_before_by_rule(point, of_rule->prediction.point))) of_rule = one;
    result.found.push_back(std::move(one));
    if (result.found.size() > 4 * kMostKept) keep_best();
  }

  // The least larger global batch that this layout takes.
  void note_larger(Point point) {
    const int64_t of_micro_batches = point.data_ranks() * point.training.batch_size;
    if (result.num_tried > 0 || of_micro_batches == 0) return;
    point.training.accumulation =
        std::max((global_batch + of_micro_batches - 1) / of_micro_batches, point.training.pipeline);
    if (result.larger && result.larger->global_batch() <= point.global_batch()) return;
    if (strategies::layout_impossible(point).empty()) result.larger = point;
  }

  // Keeps the fastest of layouts that differ in the schedule alone; they have to be sorted as keep_best()
  // does.
  void keep_one_schedule() {
    std::set<std::string> seen;
    std::erase_if(result.found, [&](const PredictedPoint& one) {
      Point point = one.prediction.point;
      point.training.schedule = TrainingPoint().schedule;
      return !seen.insert(point_id(point)).second;
    });
  }

  // Those that fit come first, by their steps; then those that do not, by their memory.
  void keep_best() {
    const auto order = [](const PredictedPoint& one) {
      const Prediction& p = one.prediction;
      return std::pair(!one.fits, one.fits ? p.step_s.value : p.memory_bytes);
    };
    std::stable_sort(result.found.begin(), result.found.end(),
                     [&](const auto& a, const auto& b) { return order(a) < order(b); });
    keep_one_schedule();
    if (result.found.size() > kMostKept)
      result.found.erase(result.found.begin() + kMostKept, result.found.end());
  }

  // What to measure: those that fit, or where none does, those that need least.
  void keep_shortlist() {
    std::vector<PredictedPoint>& found = result.found;
    if (found.empty()) return;
    const bool has_growth = found.front().prediction.growth.has_value();
    const size_t size = shortlist_size(found.front().nodes(), has_growth);
    if (!of_rule) {
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(std::min(size, found.size())), found.end());
      return;
    }
    std::erase_if(found, [](const PredictedPoint& one) { return !one.fits; });
    const std::string id = point_id(of_rule->prediction.point);
    if (std::none_of(found.begin(), found.end(),
                     [&](const PredictedPoint& one) { return point_id(one.prediction.point) == id; }))
      found.push_back(*of_rule);
    keep_one_schedule();
    std::vector<LayoutCandidate> candidates;
    for (const PredictedPoint& one : found)
      candidates.push_back({&one.prediction.point, one.prediction.step_s.value});
    std::vector<PredictedPoint> listed;
    for (const size_t i : shortlist(candidates, size)) listed.push_back(found[i]);
    found = std::move(listed);
  }

  // Trying every schedule with every layout would multiply the search. All layouts are tried as 1f1b, and
  // only the best of them under the other schedules. The loop runs over a copy, because try_one() changes
  // the list.
  void try_schedules() {
    for (const PredictedPoint& one : std::vector<PredictedPoint>(result.found)) {
      Point point = one.prediction.point;
      if (point.training.pipeline == 1) continue;
      for (const char* text : {"interleaved(chunks=2)", "zero_bubble", "zero_bubble_v"}) {
        const Choice schedule = choice_from_text(text);
        point.training.schedule =
            resolve(schedule, strategies::pipeline_schedule(schedule.name).options, "pipeline schedule");
        try_one(point);
      }
    }
    keep_best();
    keep_shortlist();
  }
};

// With sequence parallelism where the model takes it: fewer activations, as many bytes.
void set_tensor(Point& point, int64_t tensor) {
  point.training.tensor = tensor;
  point.training.sequence_parallel = tensor > 1;
  if (tensor > 1 && !strategies::layout_impossible(point).empty()) point.training.sequence_parallel = false;
}

// The numbers of ranks that can share the experts of the model's layers; 1 if it has none.
std::vector<int64_t> expert_sizes(const specs::ModelTable& table) {
  for (const specs::BlockSpec& block : table.blocks)
    if (block.expert_tokens) return divisors(block.expert_tokens->experts, block.expert_tokens->experts);
  return {1};
}

// Calls `take` with each layout of the point's ranks. The tensor-parallel ranks divide the ranks of a node,
// because they exchange activations in every block, which only links within a node do fast enough. A
// pipeline has no more stages than the model has blocks.
template <class Take>
void each_layout(const Point& like, int64_t ranks_per_node, const std::vector<Choice>& strategies,
                 const std::set<int64_t>& batch_sizes, const Take& take) {
  Point point = like;
  const auto table = known_table(like.training.model);
  const std::vector<int64_t> experts = expert_sizes(*table);
  for (const int64_t tensor : divisors(ranks_per_node, point.ranks))
    for (const int64_t pipeline : divisors(point.ranks / tensor, std::ssize(table->blocks)))
      for (const Choice& strategy : strategies)
        for (const int64_t batch : batch_sizes)
          for (const int64_t expert : experts) {
            point.training.strategy = strategy;
            point.training.batch_size = batch;
            point.training.pipeline = pipeline;
            point.training.expert = expert;
            set_tensor(point, tensor);
            take(point);
          }
}

// With the largest micro-batch of fewer than `below` samples with which a layout takes the global batch.
std::optional<Point> with_smaller_micro_batch(const Point& like, int64_t ranks_per_node,
                                              const std::vector<Choice>& strategies, int64_t below,
                                              int64_t global_batch) {
  std::optional<Point> found;
  for (int64_t batch = below - 1; batch >= 1 && !found; --batch)
    if (global_batch % batch == 0)
      each_layout(like, ranks_per_node, strategies, {batch}, [&](Point point) {
        if (!found && divide_into_micro_batches(point, global_batch) &&
            strategies::layout_impossible(point).empty())
          found = point;
      });
  return found;
}

}  // namespace

std::vector<LayoutSearch> search_layouts(const std::vector<PredictedPoint>& predicted,
                                         const std::vector<Predictor>& predictors,
                                         const PredictQuery& query) {
  std::vector<LayoutSearch> all;
  std::set<std::string> seen;
  for (const PredictedPoint& one : predicted) {
    const MergedPoint& like = *one.like;
    if (like.point.is_model_parallel() || !seen.insert(like.family).second) continue;
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
    Search search{like, *predictor_of(like, predictors), query, one.cluster, global_batch, {&like}};
    search.result.ranks = point.ranks;
    search.result.global_batch = global_batch;
    const int64_t ranks_per_node = one.cluster.ranks_per_node;
    each_layout(point, ranks_per_node, strategies, batch_sizes,
                [&](const Point& layout) { search.try_one(layout); });
    search.keep_best();
    if (search.result.num_tried == 0)
      search.result.smaller_micro_batch =
          with_smaller_micro_batch(point, ranks_per_node, strategies, *batch_sizes.begin(), global_batch);
    search.try_schedules();
    search.result.growth = search.predictor.growth_text(one.cluster);
    for (PredictedPoint& found : search.result.found)
      found.prediction = search.predictor.predict(like, found.prediction.point, one.cluster);
    all.push_back(std::move(search.result));
  }
  return all;
}

}  // namespace shardmark
