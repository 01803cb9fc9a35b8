// Computes the statistics of a record from its series. The step time is the median over steps of the maximum
// over ranks: a step ends when its slowest rank does.
#include "schema/step_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stats.h"

namespace shardmark {
namespace {

// Finds the rank that was slowest in most steps; the lowest of several that tie.
void find_slowest(const Series& series, Measures& measures) {
  std::vector<int64_t> times_slowest(static_cast<size_t>(series.rows));
  for (int64_t step = 0; step < series.columns; ++step) {
    int64_t slowest = 0;
    for (int64_t rank = 1; rank < series.rows; ++rank) {
      if (series.at(rank, step) > series.at(slowest, step)) slowest = rank;
    }
    ++times_slowest[static_cast<size_t>(slowest)];
  }
  const auto most = std::max_element(times_slowest.begin(), times_slowest.end());
  measures.slowest_rank = most - times_slowest.begin();
  measures.slowest_share = static_cast<double>(*most) / static_cast<double>(series.columns);
}

// The rate, per second of the timed windows, of the rank whose threads were preempted most often.
double preemptions_per_s(const Series& counts, const Series& window) {
  double most = Measures::kNone;
  for (int64_t rank = 0; rank < std::min(counts.rows, window.rows); ++rank) {
    double count = 0, wall_s = 0;
    for (int64_t column = 0; column < std::min(counts.columns, window.columns); ++column) {
      count += counts.at(rank, column);
      wall_s += window.at(rank, column);
    }
    if (wall_s > 0) most = std::fmax(most, count / wall_s);
  }
  return most;
}

}  // namespace

// The values are ordered [rank, step], so the first `columns` values are those of rank 0.
std::vector<double> worst_of_ranks(const Series& series) {
  std::vector<double> worst(series.values.begin(), series.values.begin() + series.columns);
  for (int64_t rank = 1; rank < series.rows; ++rank) {
    for (int64_t step = 0; step < series.columns; ++step) {
      auto& value = worst[static_cast<size_t>(step)];
      value = std::max(value, series.at(rank, step));
    }
  }
  return worst;
}

int64_t num_timed_steps(const Record& record) {
  const Series* step = record.series("step");
  const Series* intervals = record.series("interval_steps");
  if (intervals == nullptr) return step == nullptr ? 0 : step->columns;
  return std::llround(std::accumulate(intervals->values.begin(), intervals->values.end(), 0.0));
}

void summarize(Record& record) {
  const Series* series = record.series("step");
  if (series == nullptr || series->values.empty()) return;
  const std::vector<double> steps = worst_of_ranks(*series);
  const Interval interval = median_interval(steps);
  Measures& m = record.measures;
  m.step_s = median(steps);
  m.step_low_s = interval.low;
  m.step_high_s = interval.high;
  m.step_p10_s = quantile(steps, 0.10);
  m.step_p90_s = quantile(steps, 0.90);
  m.step_p99_s = quantile(steps, 0.99);
  m.variation = coefficient_of_variation(steps);
  m.drift = drift(steps);
  m.num_steps = num_timed_steps(record);
  find_slowest(*series, m);
  if (const Series* energy = record.series("energy"))
    m.energy_j =
        std::accumulate(energy->values.begin(), energy->values.end(), 0.0) / static_cast<double>(m.num_steps);
  const Series *preemptions = record.series("preemptions"), *window = record.series("window");
  if (preemptions != nullptr && window != nullptr)
    m.preemptions_per_s = preemptions_per_s(*preemptions, *window);
}

}  // namespace shardmark
