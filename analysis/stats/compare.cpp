// The tests work on logarithms of step times: a launch is slower by a factor.
#include "analysis/stats/compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/two_samples.h"

namespace shardmark {
namespace {

constexpr double kNone = Measures::kNone;

std::vector<double> logarithms(const std::vector<double>& times) {
  std::vector<double> logs;
  logs.reserve(times.size());
  for (const double time : times) {
    ENSURE(std::isfinite(time) && time > 0, "a step time is not positive");
    logs.push_back(std::log(time));
  }
  return logs;
}

// A difference of logarithms as a relative change: log(1.05) is +5 %.
double as_ratio(double log_shift) { return std::expm1(log_shift); }

// Both samples as logarithms, with the spread of one launch. The spread is pooled within the two sides, so
// it is known if one side has 3 launches, even if the other has 1.
struct Logs {
  std::vector<double> before, after;

  explicit Logs(const LaunchPair& pair) : before(logarithms(pair.old_s)), after(logarithms(pair.new_s)) {}

  bool tell_spread() const { return std::max(before.size(), after.size()) >= kLeastLaunches; }
  size_t degrees() const { return before.size() + after.size() - 2; }
  double spread() const { return std::max(pooled_deviation(before, after), kLeastSpread); }
  double shift() const { return mean(after) - mean(before); }
  double shift_deviation() const {
    return spread() *
           std::sqrt(1 / static_cast<double>(before.size()) + 1 / static_cast<double>(after.size()));
  }
};

// By ranks: exact. By spread: Student's t of the difference of the means of logarithms, over its standard
// error.
double p_value(const Logs& logs, Basis basis) {
  if (basis == Basis::ranks) return mann_whitney_p(logs.before, logs.after);
  if (basis == Basis::spread) return student_p(logs.shift() / logs.shift_deviation(), logs.degrees());
  return kNone;
}

// The interval is always at 95 %, without a correction for the number of points. So it may come from the
// inverted rank test (from 4 against 4 launches) where the verdict's test is Student's, because ranks
// cannot reach the stricter level that Holm's first step asks for.
Interval interval_of(const Logs& logs) {
  if (const auto by_ranks = shift_interval(logs.before, logs.after))
    return {as_ratio(by_ranks->low), as_ratio(by_ranks->high)};
  const double half_width = student_t(kIntervalLevel, logs.degrees()) * logs.shift_deviation();
  return {as_ratio(logs.shift() - half_width), as_ratio(logs.shift() + half_width)};
}

// As a logarithm: the middle of the interval by ranks, or the difference of the means.
double tested_shift(const Logs& logs, Basis basis) {
  const auto by_ranks =
      basis == Basis::ranks ? shift_interval(logs.before, logs.after) : std::optional<Interval>();
  return by_ranks ? (by_ranks->low + by_ranks->high) / 2 : logs.shift();
}

Judgement verdict_by_reference(const Comparison& c, const Reference& reference) {
  if (c.new_s < reference.lower) return Judgement::faster;  // false for an open end
  return c.new_s > reference.upper ? Judgement::slower : Judgement::same;
}

// An interval inside the margin never becomes SLOWER or FASTER: the change may be significant, but it is
// too small to matter. It becomes SAME only if both sides have 3 launches. With fewer on one side,
// Student's t takes the spread of that side from the other. The direction of a change is that of the shift
// which was tested. If launches have two speeds, the medians may differ in the other direction, because
// another number of launches was slow.
Judgement verdict_by_test(const Comparison& c, double shift, double margin) {
  const bool inside = c.interval.low > -margin && c.interval.high < margin;
  if (inside && std::min(c.num_old, c.num_new) >= kLeastLaunches) return Judgement::same;
  if (inside || !(c.p <= kFamilyLevel)) return Judgement::ambiguous;
  return shift < 0 ? Judgement::faster : Judgement::slower;
}

Comparison without_verdict(const LaunchPair& pair, Basis basis) {
  const Logs logs(pair);
  const double before = median(pair.old_s), after = median(pair.new_s);
  return {before,
          after,
          pair.old_s.size(),
          pair.new_s.size(),
          after / before - 1,
          logs.tell_spread() ? interval_of(logs) : Interval{kNone, kNone},
          logs.tell_spread() ? logs.spread() : kNone,
          kNone,
          basis,
          Judgement::ambiguous};
}

// The level of each single test, so that all together stay below kFamilyLevel even in the first step of
// Holm's procedure.
double level_of_each(const std::vector<LaunchPair>& pairs) {
  const auto num_tested = std::max<std::ptrdiff_t>(
      1, std::count_if(pairs.begin(), pairs.end(),
                       [](const LaunchPair& pair) { return !pair.reference && Logs(pair).tell_spread(); }));
  return kFamilyLevel / static_cast<double>(num_tested);
}

// p-values of the points that are tested, corrected for their number.
void correct(std::vector<Comparison>& comparisons, const std::vector<LaunchPair>& pairs) {
  std::vector<double> p;
  std::vector<Comparison*> tested;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (comparisons[i].basis != Basis::ranks && comparisons[i].basis != Basis::spread) continue;
    p.push_back(p_value(Logs(pairs[i]), comparisons[i].basis));
    tested.push_back(&comparisons[i]);
  }
  const std::vector<double> corrected = holm(p);
  for (size_t i = 0; i < tested.size(); ++i) tested[i]->p = corrected[i];
}

}  // namespace

std::string_view to_text(Judgement verdict) {
  constexpr std::array<std::string_view, 4> kNames = {"SAME", "FASTER", "SLOWER", "AMBIGUOUS"};
  return kNames.at(static_cast<size_t>(verdict));
}

std::vector<Comparison> compare_launches(const std::vector<LaunchPair>& pairs, double margin) {
  const double level = level_of_each(pairs);
  std::vector<Comparison> comparisons;
  comparisons.reserve(pairs.size());
  for (const LaunchPair& pair : pairs)
    comparisons.push_back(without_verdict(
        pair, pair.reference ? Basis::reference : basis_for(pair.old_s.size(), pair.new_s.size(), level)));
  correct(comparisons, pairs);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::optional<Reference>& reference = pairs[i].reference;
    comparisons[i].verdict =
        reference
            ? verdict_by_reference(comparisons[i], *reference)
            : verdict_by_test(comparisons[i], tested_shift(Logs(pairs[i]), comparisons[i].basis), margin);
  }
  return comparisons;
}

std::vector<double> smallest_slowdowns(const std::vector<LaunchPair>& pairs, double margin) {
  const double level = level_of_each(pairs);
  std::map<std::pair<size_t, size_t>, Power> powers;  // by numbers of launches
  std::vector<double> smallest;
  for (const LaunchPair& pair : pairs) {
    const Logs logs(pair);
    smallest.push_back(kNone);
    if (pair.reference || !logs.tell_spread()) continue;
    const size_t num_old = pair.old_s.size(), num_new = pair.new_s.size();
    // The simulation takes most of the time. It depends on the numbers of launches alone, so points with
    // equal numbers share one.
    const auto power = powers.try_emplace({num_old, num_new}, num_old, num_new, level).first;
    smallest.back() = power->second.slowdown(logs.spread(), margin);
  }
  return smallest;
}

Basis basis_for(size_t num_old, size_t num_new, double level) {
  const auto [fewer, more] = std::minmax(num_old, num_new);
  if (more < kLeastLaunches) return Basis::none;
  // The rank test is of use only if launches in perfect order, all of one side before all of the other,
  // would reach the level. 3 against 3 launches reach 10 % at best, so Student's t has to decide there.
  return fewer >= kLeastLaunches && mann_whitney_pairs(num_old, num_new, level) > 0 ? Basis::ranks
                                                                                    : Basis::spread;
}

}  // namespace shardmark
