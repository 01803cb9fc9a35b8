// Weighted medians, and rows drawn again.
#include "analysis/predict/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr int kDraws = 400;
constexpr double kLeastShare = 0.005;

double doublings(int64_t nodes, int64_t least) {
  return nodes > least ? std::log2(static_cast<double>(nodes) / static_cast<double>(least)) : 0;
}

// What one row says of the seconds, and how much that weighs.
struct Observation {
  double seconds, weight;
  double share;  // of the measured step that a second would be, for each doubling
};

// Solves the model for the seconds of each row by itself: what the measured step takes beyond the scaled
// simulated one, over operations x doublings. Rows on the least nodes, or without operations across nodes,
// say nothing about the seconds. Returns them sorted by the seconds.
std::vector<Observation> observations_of(const std::vector<GrowthRow>& rows, int64_t least) {
  std::vector<double> ratios;
  for (const GrowthRow& row : rows)
    if (row.nodes == least) ratios.push_back(row.measured_s / row.simulated_s);
  const double scale = median(std::move(ratios));
  std::vector<Observation> all;
  for (const GrowthRow& row : rows) {
    const double times = row.operations * doublings(row.nodes, least);
    if (!(times > 0)) continue;
    all.push_back({(row.measured_s - scale * row.simulated_s) / times, times / row.measured_s,
                   row.operations / row.measured_s});
  }
  std::sort(all.begin(), all.end(),
            [](const Observation& a, const Observation& b) { return a.seconds < b.seconds; });
  return all;
}

// The value with the least sum of weighted distances: half of the weight lies on either side. An error of a
// row relative to its measured step is its distance in seconds times `weight`, so this is the least sum of
// relative errors. count: how often each of the rows is there.
template <class Count>
double weighted_median(const std::vector<Observation>& sorted, const Count& count) {
  double total = 0, below = 0;
  for (size_t i = 0; i < sorted.size(); ++i) total += count(i) * sorted[i].weight;
  for (size_t i = 0; i < sorted.size(); ++i) {
    below += count(i) * sorted[i].weight;
    if (below >= total / 2 && count(i) > 0) return sorted[i].seconds;
  }
  return 0;
}

double weighted_median(const std::vector<Observation>& sorted) {
  return weighted_median(sorted, [](size_t) { return 1.0; });
}

Estimate with_interval(const std::vector<Observation>& sorted) {
  std::mt19937_64 random(1);
  std::vector<double> drawn;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> counts(sorted.size(), 0);
    for (size_t i = 0; i < sorted.size(); ++i) ++counts[random() % sorted.size()];
    drawn.push_back(weighted_median(sorted, [&](size_t i) { return counts[i]; }));
  }
  const double value = weighted_median(sorted);
  return {value, std::min(value, quantile(drawn, 0.025)), std::max(value, quantile(drawn, 0.975))};
}

int64_t least_nodes(const std::vector<GrowthRow>& rows) {
  return std::min_element(rows.begin(), rows.end(),
                          [](const auto& a, const auto& b) { return a.nodes < b.nodes; })
      ->nodes;
}

}  // namespace

bool Growth::is_seen() const { return operation_s.low > 0 && share >= kLeastShare; }

Estimate Growth::added_s(int64_t nodes, double operations) const {
  const double times = operations * doublings(nodes, least_nodes);
  return {times * operation_s.value, times * operation_s.low, times * operation_s.high};
}

std::string Growth::text() const {
  const auto percent = [&](double seconds) { return 100 * share * seconds / operation_s.value; };
  return fmt::format(
      "Steps grow by {:.1f} % ({:.1f} to {:.1f}) for each doubling of nodes beyond {}: {} for each operation "
      "across nodes, which the simulation lacks; fitted from {} rows on {} to {} nodes.",
      percent(operation_s.value), percent(operation_s.low), percent(operation_s.high), least_nodes,
      format_seconds(operation_s.value), format_count(static_cast<double>(num_rows)), least_nodes,
      most_nodes);
}

std::optional<Growth> fit_growth(const std::vector<GrowthRow>& rows) {
  if (rows.empty()) return std::nullopt;
  const int64_t least = least_nodes(rows);
  const std::vector<Observation> sorted = observations_of(rows, least);
  if (sorted.size() < kLeastForInterval) return std::nullopt;
  Growth growth{with_interval(sorted), 0, least, least, std::ssize(rows)};
  for (const GrowthRow& row : rows) growth.most_nodes = std::max(growth.most_nodes, row.nodes);
  std::vector<double> shares;
  // For people: what one doubling adds, as a share of a step.
  for (const Observation& one : sorted) shares.push_back(growth.operation_s.value * one.share);
  growth.share = median(std::move(shares));
  return growth;
}

double growth_without(std::vector<GrowthRow> rows, size_t left_out) {
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(left_out));
  return rows.empty() ? 0 : weighted_median(observations_of(rows, least_nodes(rows)));
}

}  // namespace shardmark
