// Medians over what is alike, and lines between batches.
#include "analysis/predict/compute_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "analysis/known.h"
#include "base/stats.h"
#include "laws/vocabulary.h"

namespace shardmark {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double micro_batch_s(const ComputeTimes& times) {
  return times.data_s + sum(times.forward_s) + sum(times.backward_s);
}

ComputeTimes scaled(ComputeTimes times, double factor) {
  times.data_s *= factor;
  for (auto* blocks : {&times.forward_s, &times.backward_s})
    for (double& seconds : *blocks) seconds *= factor;
  return times;
}

// Moment by moment.
ComputeTimes combined(const std::vector<ComputeTimes>& all,
                      const std::function<double(const std::vector<double>&)>& combine) {
  ComputeTimes result = all.front();
  const auto each = [&](auto&& moment) {
    std::vector<double> values;
    for (const ComputeTimes& one : all) values.push_back(moment(one));
    return combine(values);
  };
  result.data_s = each([](const ComputeTimes& t) { return t.data_s; });
  result.update_s = each([](const ComputeTimes& t) { return t.update_s; });
  for (size_t b = 0; b < result.forward_s.size(); ++b) {
    result.forward_s[b] = each([&](const ComputeTimes& t) { return t.forward_s[b]; });
    result.backward_s[b] = each([&](const ComputeTimes& t) { return t.backward_s[b]; });
  }
  return result;
}

ComputeTimes moments_of_slowest(const Series& series) {
  const auto total = [&](int64_t row) {
    double seconds = 0;
    for (int64_t column = 0; column < series.columns; ++column) seconds += series.at(row, column);
    return seconds;
  };
  int64_t slowest = 0;
  for (int64_t row = 1; row < series.rows; ++row)
    if (total(row) > total(slowest)) slowest = row;
  ComputeTimes times;
  const int64_t num_blocks = (series.columns - 2) / 2;
  times.data_s = series.at(slowest, 0);
  for (int64_t b = 0; b < num_blocks; ++b) {
    times.forward_s.push_back(series.at(slowest, 1 + b));
    times.backward_s.push_back(series.at(slowest, 1 + num_blocks + b));
  }
  times.update_s = series.at(slowest, series.columns - 1);
  return times;
}

using Batches = std::map<double, std::vector<const MeasuredCompute*>>;

// Medians over strategies at a batch, interpolated.
ComputeTimes at_batch(const Batches& batches, double batch) {
  const auto median_at = [](const std::vector<const MeasuredCompute*>& points) {
    std::vector<ComputeTimes> times;
    for (const auto* one : points) times.push_back(one->times);
    return combined(times, [](const std::vector<double>& values) { return median(values); });
  };
  const auto above = batches.lower_bound(batch);
  if (above != batches.end() && above->first == batch) return median_at(above->second);
  if (above == batches.begin() || above == batches.end()) {
    const auto& [size, points] = above == batches.end() ? *batches.rbegin() : *above;
    return scaled(median_at(points), batch / size);
  }
  const auto below = std::prev(above);
  const double share = (batch - below->first) / (above->first - below->first);
  return combined({median_at(below->second), median_at(above->second)},
                  [&](const std::vector<double>& ends) { return ends[0] + share * (ends[1] - ends[0]); });
}

}  // namespace

bool communicates(const Point& point) { return point.ranks > 1 && point.training.strategy.name != "single"; }

double owned_elements(const Point& point, const laws::ModelTable& table) {
  laws::CostInput input = laws::cost_input(point, table);
  input.optimizer_elements = 1;
  const laws::Cost cost = laws::strategy_law(point.training.strategy.name).cost(input);
  const auto bytes = static_cast<double>(input.bytes.master);
  return cost.optimizer_bytes > 0 ? cost.optimizer_bytes / bytes : cost.offloaded_bytes / (3 * bytes);
}

std::optional<MeasuredCompute> measured_compute(const MergedPoint& merged) {
  const Series* series = merged.records.empty() ? nullptr : merged.records.front()->series("block_time");
  const auto point = known_point(merged.point);
  if (series == nullptr || !point) return std::nullopt;
  const auto table = known_table(point->training.model);
  if (series->columns != 2 + 2 * static_cast<int64_t>(table->blocks.size())) return std::nullopt;
  const Measures& m = merged.measures;
  const double computing_s = m.step_s - m.exposed_s;
  ComputeTimes times = moments_of_slowest(*series);
  const double all_s =
      static_cast<double>(point->training.accumulation) * micro_batch_s(times) + times.update_s;
  if (!(computing_s > 0) || !(all_s > 0)) return std::nullopt;
  times.update_s *= computing_s / all_s;
  return MeasuredCompute{&merged, *point, scaled(times, computing_s / all_s), owned_elements(*point, *table)};
}

std::vector<const MeasuredCompute*> ComputeCosts::alike(const Point& point, int64_t ranks_per_node) const {
  const auto distance = [&](const MeasuredCompute& one) {
    const int64_t more = one.merged->ranks_per_node - ranks_per_node;
    constexpr int64_t kFar = 1 << 24, kFarther = 1 << 25;
    // Fewer ranks share less: only where nothing else is there.
    return (more >= 0 ? more : kFar - more) + (communicates(one.point) == communicates(point) ? 0 : kFarther);
  };
  std::vector<const MeasuredCompute*> nearest;
  for (const MeasuredCompute& one : measured_) {
    if (one.merged == without_) continue;
    if (!nearest.empty() && distance(one) > distance(*nearest.front())) continue;
    if (!nearest.empty() && distance(one) < distance(*nearest.front())) nearest.clear();
    nearest.push_back(&one);
  }
  return nearest;
}

std::optional<ComputeTimes> ComputeCosts::times(const Point& point, int64_t ranks_per_node,
                                                const laws::ModelTable& table) const {
  const auto points = alike(point, ranks_per_node);
  if (points.empty()) return std::nullopt;
  Batches batches;
  for (const auto* one : points) batches[static_cast<double>(one->point.training.batch_size)].push_back(one);
  const auto is_same_strategy = [&](const MeasuredCompute& one) {
    return to_text(one.point.training.strategy) == to_text(point.training.strategy);
  };

  std::vector<double> factors, updates, rates;
  for (const auto& [size, measured] : batches)
    for (const auto* one : measured) {
      if (one->owned_elements > 0) rates.push_back(one->times.update_s / one->owned_elements);
      if (!is_same_strategy(*one)) continue;
      if (measured.size() > 1)
        factors.push_back(micro_batch_s(one->times) / micro_batch_s(at_batch(batches, size)));
      if (one->point.ranks == point.ranks) updates.push_back(one->times.update_s);
    }
  ComputeTimes times = scaled(at_batch(batches, static_cast<double>(point.training.batch_size)),
                              factors.empty() ? 1 : median(factors));
  times.update_s = !updates.empty() ? median(updates)
                   : rates.empty()  ? times.update_s
                                    : median(rates) * owned_elements(point, table);
  return times;
}

}  // namespace shardmark
