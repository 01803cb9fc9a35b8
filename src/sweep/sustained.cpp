// Runs a point for hours in bounded memory. Each rank keeps a random sample (a reservoir) of the steps of the
// current interval, and its sums. When the interval ends, ranks exchange their summaries once, and rank 0
// appends them to the record as new columns.
#include "sweep/sustained.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/reservoir.h"
#include "base/stats.h"
#include "device/timeline.h"
#include "sweep/stopping.h"

namespace shardmark {
namespace {

constexpr auto kNone = Measures::kNone;
// Bits of NVML's throttle reasons that hold a clock below its normal value: the power cap, and faults
// (hardware slow-down, heat, power brake). All other bits mean an idle device or a setting.
constexpr uint64_t kPowerCap = 0x4, kFaults = 0x8 | 0x20 | 0x40 | 0x80;

class Mean {
 public:
  void add(double value) {
    if (std::isnan(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : kNone; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

struct NamedValue {
  const char* series;
  double value;
};

// One interval on one rank. An item of the reservoir holds all phases of one step: [phase].
class RankInterval {
 public:
  RankInterval(uint64_t seed, const std::vector<std::string>& phases)
      : phases_(phases), steps_(kIntervalSteps, seed) {}

  void add(const Window& window) {
    num_steps_ += window.num_steps;
    wall_s_ += window.wall_s;
    energy_j_ += window.energy_j;
    preemptions_ += window.preemptions;
    double timed_s = 0;
    for (size_t step = 0; step < static_cast<size_t>(window.num_steps); ++step) {
      std::vector<double> phases;
      for (const auto& row : window.phases) phases.push_back(row[step]);
      timed_s += phases.front();
      worst_s_ = std::max(worst_s_, phases.front());
      steps_.add(std::move(phases));
    }
    unaccounted_ |= !is_accounted(timed_s, window.wall_s);
    add(window.reading);
  }

  int64_t num_steps() const { return num_steps_; }
  std::vector<std::vector<double>> kept(int64_t most) const { return steps_.take(static_cast<size_t>(most)); }

  std::vector<NamedValue> summary() const {
    return {{"interval_time", median_of({"step"})},
            {"interval_worst", worst_s_},
            {"interval_compute", median_of({"forward", "backward"})},
            {"interval_clock", clock_mhz_.value()},
            {"interval_temperature", temperature_c_},
            {"interval_power", power_w_.value()},
            {"interval_throttle", throttle_},
            {"interval_throttled", throttled_.value()},
            {"interval_faulty", faulty_.value()},
            {"energy", energy_j_},
            {"window", wall_s_},
            {"preemptions", preemptions_}};
  }
  bool unaccounted() const { return unaccounted_; }

 private:
  void add(const Reading& reading) {
    clock_mhz_.add(reading.clock_mhz);
    temperature_c_ = reading.temperature_c;
    power_w_.add(reading.power_w);
    if (std::isnan(reading.throttle)) return;
    const auto slowed = static_cast<uint64_t>(reading.throttle) & (kPowerCap | kFaults);
    const uint64_t before = std::isnan(throttle_) ? 0 : static_cast<uint64_t>(throttle_);
    throttle_ = static_cast<double>(before | slowed);
    throttled_.add(slowed != 0 ? 1 : 0);
    faulty_.add((slowed & kFaults) != 0 ? 1 : 0);
  }

  // Median over steps of the sum of these phases; NaN if the workload does not have one of them.
  double median_of(const std::vector<std::string>& names) const {
    std::vector<size_t> rows;
    for (const auto& name : names) {
      const auto found = std::find(phases_.begin(), phases_.end(), name);
      if (found == phases_.end()) return kNone;
      rows.push_back(static_cast<size_t>(found - phases_.begin()));
    }
    std::vector<double> sums;
    for (const auto& step : steps_.take()) {
      sums.push_back(0);
      for (const size_t row : rows) sums.back() += step[row];
    }
    return median(std::move(sums));
  }

  const std::vector<std::string>& phases_;
  Reservoir<std::vector<double>> steps_;
  int64_t num_steps_ = 0;
  double wall_s_ = 0, energy_j_ = 0, worst_s_ = 0, preemptions_ = 0;
  bool unaccounted_ = false;
  Mean clock_mhz_, power_w_, throttled_, faulty_;
  double temperature_c_ = kNone, throttle_ = kNone;
};

// Appends the columns to the record's series.
void grow(Record& record, const std::vector<Series>& columns) {
  for (const Series& added : columns) {
    const auto found = std::find_if(record.samples.begin(), record.samples.end(),
                                    [&](const Series& series) { return series.name == added.name; });
    if (found == record.samples.end()) {
      record.samples.push_back(added);
      continue;
    }
    ENSURE(found->rows == added.rows, "a rank was lost between two windows");
    std::vector<double> values;  // rows are ranks, so every row grows at its end
    values.reserve(found->values.size() + added.values.size());
    for (int64_t row = 0; row < found->rows; ++row) {
      const auto old = found->values.begin() + row * found->columns;
      const auto more = added.values.begin() + row * added.columns;
      values.insert(values.end(), old, old + found->columns);
      values.insert(values.end(), more, more + added.columns);
    }
    found->values = std::move(values);
    found->columns += added.columns;
  }
}

// Gathers an interval from all ranks and appends it to the record's series. Collective.
void store(const HostGroup& group, const RankInterval& interval, const std::vector<std::string>& phases,
           int64_t most_kept, double end_s, const ColumnsSink& sink, Record& record) {
  const auto kept = interval.kept(most_kept);
  const bool is_first = record.series("interval_end") == nullptr;
  std::vector<Series> columns;
  const auto add = [&](const std::string& name, const std::vector<double>& own) {
    std::vector<double> all = group.gather(own);
    // A value that no rank can measure in the first interval gets no series.
    const auto is_told = [](double value) { return !std::isnan(value); };
    if (is_first ? std::any_of(all.begin(), all.end(), is_told) : record.series(name) != nullptr)
      columns.push_back({name, group.size(), std::ssize(own), std::move(all)});
  };
  for (size_t phase = 0; phase < phases.size(); ++phase) {
    std::vector<double> steps;
    for (const auto& step : kept) steps.push_back(step[phase]);
    add(phases[phase], steps);
  }
  for (const auto& named : interval.summary()) add(named.series, {named.value});
  record.measures.unaccounted |= group.max(static_cast<int64_t>(interval.unaccounted())) != 0;
  if (group.rank() != 0) return;
  columns.push_back({"interval_end", 1, 1, {end_s}});
  columns.push_back({"interval_steps", 1, 1, {static_cast<double>(interval.num_steps())}});
  grow(record, columns);
  if (sink) sink(columns);
}

}  // namespace

Verdict sustain(const HostGroup& group, const Workload& workload, WindowTimer& timer, double typical_step_s,
                const ColumnsSink& sink, Record& record) {
  const auto phases = workload.phases();
  Intervals intervals(record.point.sampling.duration_s);
  const int64_t most_kept = std::max<int64_t>(kKeptSteps / intervals.count(), 1);
  // The seed is the same on all ranks, so that they keep the same steps.
  auto seed = static_cast<uint64_t>(record.point.seed);
  std::optional<RankInterval> interval(std::in_place, seed, phases);
  Window window;
  const double begin = now_s();
  // Rank 0's clock decides for all ranks. The first window is short, in case steps are now much slower than
  // in the warm-up, as when ranks lose their cores. The length of each later window follows from the one
  // before.
  constexpr double kSlower = 8;
  int64_t steps = typical_step_s > 0 ? intervals.next_window(0, kSlower * typical_step_s) : 1;
  while ((steps = group.broadcast(steps, 0)) > 0) {
    Verdict verdict = timer.run(steps, window, true);
    if (!verdict.ok()) return verdict;
    interval->add(window);
    const double elapsed_s = now_s() - begin;
    if (group.broadcast(static_cast<int64_t>(intervals.ends(elapsed_s)), 0) != 0) {
      store(group, *interval, phases, most_kept, elapsed_s, sink, record);
      interval.emplace(++seed, phases);
      intervals.begin_next(elapsed_s);
    }
    steps = intervals.done(elapsed_s)
                ? 0
                : intervals.next_window(elapsed_s, window.wall_s / static_cast<double>(steps));
  }
  return {};
}

}  // namespace shardmark
