#include "analysis/stats/sustained.h"

#include <algorithm>
#include <cmath>

#include "base/two_samples.h"

namespace shardmark {
namespace {

constexpr double kHour = 3600;
constexpr double kDriftLevel = 0.001;   // chance that a run that does not drift is said to
constexpr double kLeastChange = 0.01;   // a drift below this is no finding
constexpr size_t kLeastIntervals = 20;  // for a drift

struct Reason {
  uint64_t bit;
  const char* name;
  bool is_fault;
};
// NVML's nvmlClocksThrottleReason*; the sweep stores no others.
constexpr Reason kReasons[] = {{4, "power cap", false},
                               {8, "hardware slow-down", true},
                               {32, "heat (driver)", true},
                               {64, "heat (hardware)", true},
                               {128, "power brake", true}};

bool is_timed(const Series* series, int64_t columns) {
  return series != nullptr && series->rows > 0 && series->columns == columns &&
         std::all_of(series->values.begin(), series->values.end(),
                     [](double t) { return std::isfinite(t) && t > 0; });
}

// Returns one value for each interval: the median over the ranks that reported one. A single rank that is
// slow, or whose device reads wrongly, does not move it; slow ranks are found by themselves in find_slow().
std::vector<double> medians(const Series& series) {
  std::vector<double> all;
  for (int64_t k = 0; k < series.columns; ++k) {
    std::vector<double> told;
    for (int64_t rank = 0; rank < series.rows; ++rank)
      if (std::isfinite(series.at(rank, k))) told.push_back(series.at(rank, k));
    all.push_back(told.empty() ? Measures::kNone : median(std::move(told)));
  }
  return all;
}

// Returns the first and the last tenth of the values, at least one value each. A single interval may have
// been disturbed, so the two ends of a run are compared by several intervals each.
std::pair<std::vector<double>, std::vector<double>> tenths(const std::vector<double>& values) {
  const auto count = static_cast<std::ptrdiff_t>(std::max<size_t>(values.size() / 10, 1));
  return {{values.begin(), values.begin() + count}, {values.end() - count, values.end()}};
}

FirstLast first_last(const Record& record, const char* name, int64_t columns) {
  const Series* series = record.series(name);
  if (series == nullptr || series->columns != columns) return {};
  auto [first, last] = tenths(medians(*series));
  for (auto* tenth : {&first, &last}) std::erase_if(*tenth, [](double x) { return std::isnan(x); });
  if (first.empty() || last.empty()) return {};
  return {median(first), median(last)};
}

// Looks for a drift of the step time, and says how large it is. All of it works on logarithms, so slopes
// and shifts are relative.
//
// How large: the medians of the first and of the last tenth are compared. The interval of the change comes
// from the inverted rank test, so it needs 4 intervals in each tenth (a run of 40 intervals).
//
// Whether: two tests look for it, each at half of the level (Bonferroni). The slope over all pairs of
// intervals (Theil and Sen) sees a device that heats up slowly; the change point sees a clock that drops at
// once. Whichever finds something must have the direction of the change between the tenths. Otherwise a run
// that was disturbed in the middle, and ended as fast as it began, would be called drifting.
void find_drift(Sustained& run, const std::vector<double>& steps_s) {
  std::vector<double> hours, logs;
  double begin_s = 0;
  for (size_t k = 0; k < steps_s.size(); ++k) {
    // The step time of an interval stands for its middle.
    hours.push_back((begin_s + run.ends_s[k]) / 2 / kHour);
    begin_s = run.ends_s[k];
    logs.push_back(std::log(steps_s[k]));
  }
  const auto [first, last] = tenths(logs);
  run.step_s = {std::exp(median(first)), std::exp(median(last))};
  if (const auto shift = shift_interval(first, last))
    run.change = Interval{std::expm1(shift->low), std::expm1(shift->high)};
  if (logs.size() < kLeastIntervals) return;
  // A slope and the ends of its interval are logarithms per hour; they become relative changes per hour.
  const Trend trend = trend_of(hours, logs);
  run.drift = Trend{
      std::expm1(trend.slope), {std::expm1(trend.interval.low), std::expm1(trend.interval.high)}, trend.p};
  // A slope is best seen in all pairs, a step in the medians of its two sides.
  const auto step = change_point(logs, kLeastIntervals / 4);
  const bool slopes = trend.p <= kDriftLevel / 2 && (trend.slope > 0) == (run.change_ratio() > 0);
  const bool steps = step->p <= kDriftLevel / 2 && (step->shift > 0) == (run.change_ratio() > 0);
  run.is_drift = (slopes || steps) && std::abs(run.change_ratio()) >= kLeastChange;
}

// How long one reason held clocks down. An interval stores which reasons occurred in it, and one share of
// its readings for all of them. If two reasons occurred in an interval, each is charged the whole share. A
// NaN among the bits is an interval in which the device said nothing.
Throttling throttling(const Reason& reason, const Series& bits, const Series& shares,
                      const std::vector<double>& ends_s) {
  Throttling found{reason.name, reason.is_fault};
  for (int64_t rank = 0; rank < bits.rows; ++rank) {
    double own = 0;
    for (int64_t k = 0; k < bits.columns; ++k) {
      const double mask = bits.at(rank, k);
      if (!(mask >= 0 && mask < 1e9) || (static_cast<uint64_t>(mask) & reason.bit) == 0) continue;
      const double end_s = ends_s[static_cast<size_t>(k)];
      found.since_s = found.since_s > 0 ? std::min(found.since_s, end_s) : end_s;
      own += shares.at(rank, k) / static_cast<double>(bits.columns);
    }
    found.share += own / static_cast<double>(bits.rows);
    found.num_ranks += own > 0;
    if (own <= found.worst_share) continue;
    found.worst_share = own;
    found.worst_rank = rank;
  }
  return found;
}

void find_throttling(Sustained& run, int64_t columns) {
  const Series* bits = run.record->series("interval_throttle");
  const Series* shares = run.record->series("interval_throttled");
  if (bits == nullptr || shares == nullptr || bits->columns != columns || shares->columns != columns ||
      shares->rows != bits->rows || bits->rows == 0)
    return;
  std::vector<double> told;
  std::copy_if(shares->values.begin(), shares->values.end(), std::back_inserter(told),
               [](double x) { return std::isfinite(x); });
  if (!told.empty()) run.throttled = mean(told);
  // The share of faults is stored apart, because a power cap, which is usual, may occur in the same
  // interval and would be charged to the fault. Older studies only hold the share of all reasons together.
  const Series* faulty = run.record->series("interval_faulty");
  const bool tells_faults = faulty != nullptr && faulty->columns == columns && faulty->rows == bits->rows;
  for (const Reason& reason : kReasons)
    if (Throttling found =
            throttling(reason, *bits, reason.is_fault && tells_faults ? *faulty : *shares, run.ends_s);
        found.share > 0)
      run.reasons.push_back(std::move(found));
  std::stable_sort(run.reasons.begin(), run.reasons.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
}

void find_slow(Sustained& run, int64_t columns) {
  if (run.record->point.training.expert > 1) return;  // ranks with popular experts compute more
  const Series* series = run.record->series("interval_compute");
  if (series == nullptr || series->columns != columns) return;
  std::vector<std::vector<double>> compute(static_cast<size_t>(series->rows));
  for (int64_t rank = 0; rank < series->rows; ++rank)
    for (int64_t k = 0; k < columns; ++k) compute[static_cast<size_t>(rank)].push_back(series->at(rank, k));
  // The environment lists the ranks of the whole launch; a point on fewer ranks uses the first of them.
  auto hosts = run.environment->rank_nodes;
  if (hosts.size() > compute.size()) hosts.resize(compute.size());
  run.slow = slow_spells(compute, run.ends_s, hosts);
}

}  // namespace

std::vector<Sustained> sustained_runs(const std::vector<MergedPoint>& points) {
  std::vector<Sustained> runs;
  for (const MergedPoint& merged : points)
    for (size_t i = 0; i < merged.records.size(); ++i) {
      const Record& record = *merged.records[i];
      // A record is a sustained run if its intervals have ends in order, and every rank has a time above 0
      // for each. Records without such series, and damaged ones, are passed over.
      const Series* ends = record.series("interval_end");
      const Series* times = record.series("interval_time");
      if (ends == nullptr || ends->rows != 1 || !is_timed(ends, ends->columns) || ends->columns == 0 ||
          !is_timed(times, ends->columns) || !std::is_sorted(ends->values.begin(), ends->values.end()))
        continue;
      Sustained run{&merged, &record, merged.environments[i], ends->values};
      // unfinished_runs() sets 0 repeats, because such a run is no result.
      if (merged.repeats == 0)
        run.unfinished = is_bad(record.outcome) || record.outcome == Outcome::out_of_memory
                             ? to_text(record.outcome)
                             : "not yet";
      find_drift(run, medians(*times));
      find_throttling(run, ends->columns);
      run.clock_mhz = first_last(record, "interval_clock", ends->columns);
      run.temperature_c = first_last(record, "interval_temperature", ends->columns);
      run.power_w = first_last(record, "interval_power", ends->columns);
      // Ranks that share cores are slow in turn, which says nothing about any of them.
      if (!record.measures.oversubscribed) find_slow(run, ends->columns);
      runs.push_back(std::move(run));
    }
  return runs;
}

std::vector<MergedPoint> unfinished_runs(const std::vector<StudyData>& studies) {
  std::vector<MergedPoint> runs;
  const auto add = [&](const Record& record, const Environment& environment) {
    if (!is_known_workload(record.point) || record.series("interval_end") == nullptr) return;
    MergedPoint run = as_merged(record, environment);
    run.repeats = 0;
    run.records = {&record};
    run.environments = {&environment};
    runs.push_back(std::move(run));
  };
  for (const StudyData& study : studies) {
    for (const Record& record : study.records)
      if (record.outcome != Outcome::ok) add(record, study.environment);
    if (study.under_way) add(*study.under_way, study.environment);
  }
  return runs;
}

}  // namespace shardmark
