#include "analysis/frame/together.h"

#include <algorithm>
#include <functional>

#include "analysis/frame/slowest.h"
#include "base/stats.h"

namespace shardmark {
namespace {

struct Rounds {
  std::vector<double> load_alone, collective_alone, load_together, collective_together, together;
};

std::optional<Rounds> rounds_of(const Record& record) {
  Rounds rounds{slowest_of(record, "load_alone"), slowest_of(record, "collective_alone"),
                slowest_of(record, "load_together"), slowest_of(record, "collective_together"),
                slowest_of(record, "together")};
  const size_t count = rounds.together.size();
  for (const auto* part : {&rounds.load_alone, &rounds.collective_alone, &rounds.load_together,
                           &rounds.collective_together, &rounds.together})
    if (part->size() != count || count == 0 || *std::min_element(part->begin(), part->end()) <= 0)
      return std::nullopt;
  return rounds;
}

using Ratio = std::function<double(const Rounds& rounds, size_t round)>;

// Takes the ratio in each round, because a round measures both alone and together shortly after each other:
// a slow machine then slows both sides of the ratio. The value is the median over the records of the
// medians over their rounds; the interval is the hull of the records' intervals, or none if one of them has
// none.
Estimate estimate(const std::vector<Rounds>& records, const Ratio& ratio) {
  std::vector<double> medians;
  Estimate hull{0, 1e300, 0};
  bool all_have = true;  // an interval: fewer than 6 rounds have none
  for (const Rounds& rounds : records) {
    std::vector<double> ratios;
    for (size_t round = 0; round < rounds.together.size(); ++round) ratios.push_back(ratio(rounds, round));
    const Interval interval = median_interval(ratios);
    medians.push_back(median(std::move(ratios)));
    all_have &= interval.low <= interval.high;
    hull.low = std::min(hull.low, interval.low);
    hull.high = std::max(hull.high, interval.high);
  }
  hull.value = median(std::move(medians));
  if (!all_have) hull.low = hull.high = Measures::kNone;
  return hull;
}

}  // namespace

std::optional<Together> together_of(const MergedPoint& merged) {
  if (!is_together(merged)) return std::nullopt;
  std::vector<Rounds> records;
  for (const Record* record : merged.records)
    if (auto rounds = rounds_of(*record)) records.push_back(std::move(*rounds));
  if (records.empty()) return std::nullopt;
  const auto value_of = [&](const Ratio& ratio) { return estimate(records, ratio).value; };
  Together found;
  found.load_s = value_of([](const Rounds& r, size_t i) { return r.load_alone[i]; });
  found.collective_s = value_of([](const Rounds& r, size_t i) { return r.collective_alone[i]; });
  found.together_s = value_of([](const Rounds& r, size_t i) { return r.together[i]; });
  // Which side is the longer one is decided once: the longer of each round would be too long by its noise.
  const bool is_load = found.load_s > found.collective_s;
  const auto longer = [=](const Rounds& r, size_t i) {
    return is_load ? r.load_alone[i] : r.collective_alone[i];
  };
  const auto shorter = [=](const Rounds& r, size_t i) {
    return is_load ? r.collective_alone[i] : r.load_alone[i];
  };
  const auto sum = [](const Rounds& r, size_t i) { return r.load_alone[i] + r.collective_alone[i]; };
  found.ratio = estimate(records, [=](const Rounds& r, size_t i) { return r.together[i] / longer(r, i); });
  found.no_overlap = value_of([=](const Rounds& r, size_t i) { return sum(r, i) / longer(r, i); });
  found.hidden =
      value_of([=](const Rounds& r, size_t i) { return (sum(r, i) - r.together[i]) / shorter(r, i); });
  found.of_sum = estimate(records, [=](const Rounds& r, size_t i) { return r.together[i] / sum(r, i); });
  found.load_slowdown =
      value_of([](const Rounds& r, size_t i) { return r.load_together[i] / r.load_alone[i]; });
  found.collective_slowdown =
      value_of([](const Rounds& r, size_t i) { return r.collective_together[i] / r.collective_alone[i]; });
  return found;
}

}  // namespace shardmark
