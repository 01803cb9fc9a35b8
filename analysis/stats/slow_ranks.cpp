// Forward and backward are the same work on every rank, unless ranks share experts, of which some are
// popular; data and the optimizer's part need not be.
#include "analysis/stats/slow_ranks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/stats.h"

namespace shardmark {
namespace {

constexpr double kExcess = 0.05;

// What one of several took, with the interval of the median over steps.
struct Taken {
  double median_s;
  Interval interval;
};

Taken taken(const std::vector<double>& steps) { return {median(steps), median_interval(steps)}; }

// Returns [rank][step]: forward + backward, of all repeats that ran on the same hosts as the first. On
// other hosts, a rank would be another device.
std::vector<std::vector<double>> computing(const MergedPoint& merged) {
  const Series* first = merged.records.front()->series("forward");
  if (first == nullptr || first->rows != merged.point.ranks) return {};
  std::vector<std::vector<double>> ranks(static_cast<size_t>(merged.point.ranks));
  for (size_t i = 0; i < merged.records.size(); ++i) {
    const Series* forward = merged.records[i]->series("forward");
    const Series* backward = merged.records[i]->series("backward");
    if (merged.environments[i]->rank_nodes != merged.environments.front()->rank_nodes || forward == nullptr ||
        backward == nullptr || forward->rows != merged.point.ranks || backward->rows != forward->rows ||
        backward->columns != forward->columns)
      continue;
    for (int64_t rank = 0; rank < forward->rows; ++rank)
      for (int64_t step = 0; step < forward->columns; ++step)
        ranks[static_cast<size_t>(rank)].push_back(forward->at(rank, step) + backward->at(rank, step));
  }
  return ranks;
}

bool is_timed(const std::vector<std::vector<double>>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [](const std::vector<double>& steps) {
    return !steps.empty() &&
           std::all_of(steps.begin(), steps.end(), [](double s) { return std::isfinite(s) && s > 0; });
  });
}

// By how much one takes longer than the median of the others; 0 where that is within kExcess or within the
// intervals, or where there are too few steps for intervals.
double excess(const std::vector<Taken>& all, size_t one) {
  if (std::isnan(all[one].interval.low)) return 0;
  std::vector<double> medians, highs;
  for (size_t i = 0; i < all.size(); ++i)
    if (i != one) {
      medians.push_back(all[i].median_s);
      highs.push_back(all[i].interval.high);
    }
  const double over = all[one].median_s / median(medians) - 1;
  return over > kExcess && all[one].interval.low > median(highs) ? over : 0;
}

std::vector<Taken> taken_of(const std::vector<std::vector<double>>& all) {
  std::vector<Taken> result;
  result.reserve(all.size());
  for (const auto& steps : all) result.push_back(taken(steps));
  return result;
}

using Nodes = std::map<std::string, std::vector<size_t>>;  // host -> ranks

// One node where the study does not say who lies where.
Nodes nodes_of(const MergedPoint& merged) {
  Nodes nodes;
  const auto& hosts = merged.environments.front()->rank_nodes;
  for (size_t rank = 0; rank < static_cast<size_t>(merged.point.ranks); ++rank)
    nodes[rank < hosts.size() ? hosts[rank] : ""].push_back(rank);
  return nodes;
}

// A node takes what its ranks take in the mean.
std::vector<std::vector<double>> means(const Nodes& nodes, const std::vector<std::vector<double>>& ranks) {
  std::vector<std::vector<double>> result;
  for (const auto& [host, here] : nodes) {
    std::vector<double> mean(ranks.front().size());
    for (const size_t rank : here)
      for (size_t step = 0; step < mean.size(); ++step)
        mean[step] += ranks[rank][step] / static_cast<double>(here.size());
    result.push_back(std::move(mean));
  }
  return result;
}

// Nodes against each other; ranks of a slow node among themselves, all other ranks together.
std::vector<Slow> slow_in(const MergedPoint& merged) {
  const auto ranks = computing(merged);
  if (ranks.empty() || !is_timed(ranks)) return {};
  const Nodes nodes = nodes_of(merged);
  std::vector<Slow> found;
  std::vector<std::vector<size_t>> groups(1);
  const std::vector<Taken> by_node = taken_of(means(nodes, ranks));
  size_t number = 0;
  for (const auto& [host, here] : nodes) {
    const double over = nodes.size() > 1 && here.size() > 1 ? excess(by_node, number) : 0;
    ++number;
    if (over > 0) found.push_back({&merged, true, -1, host, over, 0});
    auto& group = over > 0 ? groups.emplace_back() : groups.front();
    group.insert(group.end(), here.begin(), here.end());
  }
  const auto& hosts = merged.environments.front()->rank_nodes;
  for (const auto& group : groups) {
    if (group.size() < 2) continue;
    std::vector<Taken> times;
    times.reserve(group.size());
    for (const size_t rank : group) times.push_back(taken(ranks[rank]));
    for (size_t i = 0; i < group.size(); ++i)
      if (const double over = excess(times, i); over > 0)
        found.push_back({&merged, false, static_cast<int64_t>(group[i]),
                         group[i] < hosts.size() ? hosts[group[i]] : "", over, 0});
  }
  return found;
}

}  // namespace

std::vector<Slow> slow_ranks(const std::vector<MergedPoint>& points) {
  // A slow rank is slow in most points of a study. It is reported once, by the point in which its excess is
  // largest, with the number of the other points.
  using Key = std::tuple<std::string, std::string, int64_t, int64_t>;  // machine, host, rank, ranks in all
  std::map<Key, Slow> worst;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_unreliable(merged) || merged.point.ranks < 2 ||
        merged.point.training.expert > 1 || merged.records.empty() ||
        merged.point.sampling.duration_s > 0)  // reported with its time: sustained.h
      continue;
    for (const Slow& slow : slow_in(merged)) {
      const auto [known, is_new] =
          worst.try_emplace({merged.machine, slow.host, slow.rank, merged.point.ranks}, slow);
      if (is_new) continue;
      const int64_t others = known->second.others + 1;
      if (slow.excess > known->second.excess) known->second = slow;
      known->second.others = others;
    }
  }
  std::vector<Slow> all;
  all.reserve(worst.size());
  for (const auto& [key, slow] : worst) all.push_back(slow);
  return all;
}

}  // namespace shardmark
