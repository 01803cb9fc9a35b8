// Exact null distributions by counting all ways to assign the ranks. No normal approximation is used.
#include "base/two_samples.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace shardmark {
namespace {

// Twice the rank of each value among all values, those of a first. Doubling keeps the mean rank of equal
// values whole.
std::vector<size_t> doubled_ranks(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  std::vector<size_t> ranks;
  ranks.reserve(all.size());
  for (const double value : all) {
    // Equal values have the ranks first + 1 to last. Their mean rank, doubled, is first + last + 1.
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<size_t>((first - sorted.begin()) + (last - sorted.begin()) + 1));
  }
  return ranks;
}

// For each sum: in how many ways `count` of the ranks can be chosen so that they have this sum. The ranks
// are added one after the other (dynamic programming, as for a knapsack). `chosen` runs downwards, so that
// the row below still holds the counts without the current rank, and no rank is chosen twice. The counts are
// doubles, because those of large samples do not fit into 64 bits.
std::vector<double> ways_by_sum(const std::vector<size_t>& ranks, size_t count) {
  const size_t largest = std::accumulate(ranks.begin(), ranks.end(), size_t{0});
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(largest + 1, 0));  // [chosen][sum]
  ways[0][0] = 1;
  size_t reached = 0;
  for (const size_t rank : ranks) {
    reached += rank;
    for (size_t chosen = count; chosen >= 1; --chosen)
      for (size_t sum = reached; sum >= rank; --sum) ways[chosen][sum] += ways[chosen - 1][sum - rank];
  }
  return ways[count];
}

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  all.reserve(a.size() * b.size());
  for (const double x : a)
    for (const double y : b) all.push_back(y - x);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

// If both samples come from one distribution, every choice of ranks for `a` is equally likely. So the
// p-value is the share of the choices whose sum of ranks is at least as far from the expected sum as the
// observed one, on either side.
double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b) {
  ENSURE(!a.empty() && !b.empty(), "a test of nothing");
  const std::vector<size_t> ranks = doubled_ranks(a, b);
  const auto expected = static_cast<double>(a.size() * (ranks.size() + 1));  // doubled, like the ranks
  const auto end_of_a = ranks.begin() + static_cast<std::ptrdiff_t>(a.size());
  const double distance =
      std::abs(static_cast<double>(std::accumulate(ranks.begin(), end_of_a, size_t{0})) - expected);
  double all = 0, as_uneven = 0;
  const std::vector<double> ways = ways_by_sum(ranks, a.size());
  for (size_t sum = 0; sum < ways.size(); ++sum) {
    all += ways[sum];
    if (std::abs(static_cast<double>(sum) - expected) >= distance) as_uneven += ways[sum];
  }
  return as_uneven / all;
}

// How far a sum of ranks lies above the smallest possible one is the number of pairs in which the value of
// `a` is the larger one (Mann and Whitney's U). The loop adds up the chances of U = 0, 1, 2 ... and ends at
// the first U whose two-sided chance is above the level.
size_t mann_whitney_pairs(size_t num_a, size_t num_b, double level) {
  std::vector<size_t> ranks(num_a + num_b);
  std::iota(ranks.begin(), ranks.end(), size_t{1});
  const std::vector<double> ways = ways_by_sum(ranks, num_a);
  const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
  const size_t smallest = num_a * (num_a + 1) / 2;  // the sum of a's ranks when all of a lie below b
  double tail = 0;
  size_t pairs = 0;
  for (; pairs < num_a * num_b; ++pairs) {
    tail += ways[smallest + pairs];
    if (2 * tail / all > level) break;
  }
  return pairs;
}

// The interval consists of all shifts that the rank test does not reject. A shift is rejected if fewer than
// `pairs` differences lie on one side of it, so the ends are the differences that are `pairs` places from
// either end of the sorted list.
std::optional<Interval> shift_interval(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t pairs = mann_whitney_pairs(a.size(), b.size(), kIntervalLevel);
  if (pairs == 0) return {};
  const std::vector<double> all = differences(a, b);
  return Interval{all[pairs - 1], all[all.size() - pairs]};
}

double pooled_deviation(const std::vector<double>& a, const std::vector<double>& b) {
  ENSURE(a.size() + b.size() > 2, "no degree of freedom");
  double squares = 0;
  for (const auto* sample : {&a, &b})
    for (const double value : *sample) squares += (value - mean(*sample)) * (value - mean(*sample));
  return std::sqrt(squares / static_cast<double>(a.size() + b.size() - 2));
}

// The probability inside -t .. t is a finite series in the cosine of atan(t / sqrt(degrees)). It has odd
// powers for odd degrees and even powers for even ones.
double student_p(double t, size_t degrees) {
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (size_t i = odd ? 3 : 2; i <= degrees; i += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(i - 1) / static_cast<double>(i);
  }
  const double inside = odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  return std::clamp(1 - inside, 0.0, 1.0);
}

// Finds the point by bisection, because student_p falls as t grows.
double student_t(double p, size_t degrees) {
  ENSURE(p > 0 && p <= 1 && degrees > 0, "no such point of Student's t");
  double low = 0, high = 1;
  while (student_p(high, degrees) > p && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (student_p(middle, degrees) > p ? low : high) = middle;
  }
  return high;
}

// The smallest of n p-values is multiplied by n, the next one by n - 1, and so on. No corrected value may be
// below the one before it, so the running maximum is taken.
std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    corrected[order[i]] = largest;
  }
  return corrected;
}

}  // namespace shardmark
