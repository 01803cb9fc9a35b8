// The layouts of the playbook and their predictions, simulated once for all tests.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "published_playbook.h"

namespace shardmark {

// Returns the predictions of all rows, including those on one node. They are computed only once, because that
// takes seconds.
inline const std::vector<PlaybookPrediction>& predictions_of_all_rows() {
  static const std::vector<PlaybookPrediction> all = all_playbook_predictions();
  return all;
}

// Returns the predictions on several nodes, as playbook_predictions() does.
inline const std::vector<PlaybookPrediction>& all_predictions() {
  static const std::vector<PlaybookPrediction> several = [] {
    std::vector<PlaybookPrediction> some;
    for (const PlaybookPrediction& one : predictions_of_all_rows())
      if (one.row->nodes > 1) some.push_back(one);
    return some;
  }();
  return several;
}

inline double tokens_per_s(const PlaybookPrediction& one) {
  return static_cast<double>(one.row->point.global_batch()) / one.row->step_s;
}

using Job = PlaybookJob;
using Jobs = std::map<std::pair<std::string, int64_t>, Job>;  // by model and number of nodes
inline Jobs jobs_of(const std::vector<PlaybookPrediction>& predictions) {
  Jobs jobs;
  for (const PlaybookPrediction& one : predictions)
    if (one.row->ran()) jobs[{one.row->model, one.row->nodes}].push_back(one);
  return jobs;
}

// Returns the percentage of tokens/s that a job loses if it runs the layout that comes first in this order.
template <class Order>
double loss_in_percent(const Job& job, const Order& order) {
  const PlaybookPrediction& first = *std::min_element(
      job.begin(), job.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  double most = 0;
  for (const PlaybookPrediction& one : job) most = std::max(most, tokens_per_s(one));
  return 100 * (1 - tokens_per_s(first) / most);
}

// A rule of thumb without any prediction: no pipeline, the fewest tensor-parallel ranks, ZeRO stage 1, and
// the largest micro-batch.
inline auto by_rule(const PlaybookPrediction& one) {
  const TrainingPoint& t = one.row->point.training;
  return std::tuple(t.pipeline, t.tensor, t.strategy.name == "ddp", -t.batch_size);
}

inline double by_step(const PlaybookPrediction& one) { return one.step_s; }

}  // namespace shardmark
