#include "analysis/frame/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "base/units.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

constexpr double kHalfWidth = 0.1;  // of the median's interval, relative: beyond it, the median is not known

// What a step took: of all ranks the longest time, and by how much of it the shortest is shorter.
struct Steps {
  std::vector<double> longest, apart;
};

Steps steps_of(const Series& series) {
  Steps steps;
  for (int64_t column = 0; column < series.columns; ++column) {
    double low = series.at(0, column), high = low;
    for (int64_t rank = 1; rank < series.rows; ++rank) {
      low = std::min(low, series.at(rank, column));
      high = std::max(high, series.at(rank, column));
    }
    steps.longest.push_back(high);
    steps.apart.push_back((high - low) / high);
  }
  return steps;
}

// Compares the last third of the steps with the first, if the time of a step goes with its number
// (Spearman). Both must hold: a trend without a change of size does not matter, and a change without a
// trend may be a few disturbed steps. A change of less than kLeastChange_s is a few ticks of a clock, or
// one interrupt, however large it is relative to an operation of a microsecond.
void add_drift(const std::vector<double>& steps, bool on_gpu, std::vector<Warning>& warnings) {
  constexpr size_t kLeastSteps = 12;
  constexpr double kChange = 0.05, kLeastChange_s = 1e-6, kCorrelation = 0.5;
  const auto third = static_cast<std::ptrdiff_t>(steps.size() / 3);
  if (steps.size() < kLeastSteps || std::abs(drift(steps)) < kCorrelation) return;
  const double first = median({steps.begin(), steps.begin() + third}),
               last = median({steps.end() - third, steps.end()});
  const double change = last / first - 1;
  if (std::abs(last - first) < kLeastChange_s) return;
  if (change < -kChange)
    warnings.push_back(
        {"warming up",
         fmt::format("still getting faster: last third of the steps {:.0f} % below the first", -100 * change),
         true});
  if (change > kChange)
    warnings.push_back({"slowing down",
                        fmt::format("getting slower{}: last third of the steps {:.0f} % above the first",
                                    on_gpu ? ", possibly throttled" : "", 100 * change),
                        true});
}

void add_spread(const Measures& m, std::vector<Warning>& warnings) {
  constexpr double kTail = 1.5;
  const double half = (m.step_high_s - m.step_low_s) / 2 / m.step_s, tail = m.step_p90_s / m.step_s;
  if (half > kHalfWidth)
    warnings.push_back({"uncertain",
                        half < 1 ? fmt::format("the median is uncertain by +- {:.0f} %", 100 * half)
                                 : fmt::format("the median is uncertain: its 95 % interval is {} to {}",
                                               format_seconds(m.step_low_s), format_seconds(m.step_high_s)),
                        true});
  if (tail > kTail && std::isfinite(tail))
    warnings.push_back(
        {"uneven steps", fmt::format("one step in ten takes {:.1f} times the median or more", tail), false});
}

// Too few steps have no interval, but where even they differ so much, nobody knows the median.
void add_few(const std::vector<double>& steps, std::vector<Warning>& warnings) {
  if (steps.size() < 2 || steps.size() >= kLeastForInterval) return;
  const auto [low, high] = std::minmax_element(steps.begin(), steps.end());
  if ((*high - *low) / 2 / median(steps) > kHalfWidth)
    warnings.push_back({"uncertain",
                        fmt::format("the median is uncertain: its {} steps took {} to {}", steps.size(),
                                    format_seconds(*low), format_seconds(*high)),
                        true});
}

// Whether other processes had the cores of its ranks for part of the time. Linux lets a thread that shares a
// core with another busy one run for 3 to 4 ms before it takes the core away, which is more than 100
// involuntary switches a second of each. A thread with a core of its own meets only the kernel's threads, a
// few times a second, for microseconds. 20 is far from both: about a sixth of the time on a shared core.
void add_lost_cores(const Measures& m, std::vector<Warning>& warnings) {
  constexpr double kOften = 20;
  if (m.oversubscribed || !(m.preemptions_per_s > kOften)) return;  // else they are its own ranks
  warnings.push_back(
      {kLostCores,
       fmt::format("other processes took the core of a computing thread {:.0f} times a second: "
                   "its times are too long by an unknown factor",
                   m.preemptions_per_s),
       false});
}

// Throughput comes from all steps, step time is their median. Where they disagree by more than the half-width
// up to which a median counts as known, the two columns may rank points differently.
void add_mean(const Record& record, std::vector<Warning>& warnings) {
  const Measures& m = record.measures;
  const double average_s = static_cast<double>(record.point.global_batch()) / m.samples_per_s;
  const double ratio = average_s / m.step_s;
  if (!std::isfinite(ratio) || ratio <= 0 || std::max(ratio, 1 / ratio) <= 1 + kHalfWidth) return;
  warnings.push_back(
      {"mean differs",
       fmt::format(
           "the average step, {}, is {:.0f} % {} the median: samples/s and step time may rank it differently",
           format_seconds(average_s), 100 * std::abs(ratio - 1), ratio > 1 ? "above" : "below"),
       false});
}

// A part of every step is no longer than that step, so the medians are in that order too.
void add_impossible(const Measures& m, std::vector<Warning>& warnings) {
  constexpr double kClocks = 1.01;  // what two clocks may differ by
  if (m.exposed_s >= 0 && m.exposed_s <= kClocks * m.step_s) return;
  if (std::isnan(m.exposed_s)) return;
  warnings.push_back({"inconsistent phases",
                      fmt::format("{} of exposed communication in a step of {} is impossible",
                                  format_seconds(m.exposed_s), format_seconds(m.step_s)),
                      true});
}

// A step holds all of its operations: a probe that expected more of them was disturbed, and auto chose by it.
void add_probe(const Measures& m, std::vector<Warning>& warnings) {
  if (!(m.probed_communication_s > m.step_high_s)) return;
  warnings.push_back(
      {"disturbed probe",
       fmt::format("auto chose by a probe that expected {} of communication, but the whole step "
                   "takes {}: another strategy may be faster, measure the candidates that plan "
                   "lists",
                   format_seconds(m.probed_communication_s), format_seconds(m.step_s)),
       false});
}

// An operation that no rank can leave before all have entered ends at about the same time everywhere. If
// its durations differ, ranks did not enter together, and the longest one contains waiting.
void add_entry_skew(const Record& record, const std::vector<double>& apart, std::vector<Warning>& warnings) {
  constexpr double kApart = 0.3;
  const auto* operation = specs::find_operation(record.point.collective.operation);
  if (operation == nullptr || !operation->waits_for_all() || median(apart) <= kApart) return;
  warnings.push_back(
      {"uneven entry",
       fmt::format(
           "ranks start the operation at different times: its duration differs by {:.0f} % between them",
           100 * median(apart)),
       true});
}

// Packets that were sent again cost time, and a card that stays idle leaves its bandwidth unused.
void add_network(const Measures& m, std::vector<Warning>& warnings) {
  if (m.network_retransmits + m.network_losses > 0)
    warnings.push_back(
        {"lost packets",
         fmt::format("while it was timed, the network ports counted {} packets sent again and {} lost: {}",
                     format_count(m.network_retransmits), format_count(m.network_losses), m.network_ports),
         false});
  if (m.network_idle_ports > 0)
    warnings.push_back(
        {"idle network ports",
         fmt::format("{} network port{} carried next to nothing while others of the node were busy: {}",
                     m.network_idle_ports, m.network_idle_ports == 1 ? "" : "s", m.network_ports),
         false});
}

// GPUs alone have an allocator's reserve, and NCCL.
bool is_on_gpu(const Record& record) {
  return record.point.transport.find("nccl") != std::string::npos ||
         std::isfinite(record.measures.reserved_bytes);
}

bool all_timed(const Series& series) {
  const auto count = static_cast<int64_t>(series.values.size());
  if (series.rows <= 0 || series.columns <= 0 || count % series.rows != 0) return false;
  return count / series.rows == series.columns &&
         std::all_of(series.values.begin(), series.values.end(),
                     [](double t) { return std::isfinite(t) && t > 0; });
}

}  // namespace

std::vector<Warning> warnings_of(const Record& record) {
  const Measures& m = record.measures;
  std::vector<Warning> warnings;
  if (!std::isfinite(m.step_s) || m.step_s <= 0)
    return {{"no time", "no step time above 0 was recorded", true}};
  if (m.oversubscribed)
    warnings.push_back({"oversubscribed", "more ranks than cores, or several ranks on one GPU", true});
  if (m.unaccounted)
    warnings.push_back({"unaccounted", "the parts of its steps do not add up to its wall time", true});
  add_lost_cores(m, warnings);
  add_network(m, warnings);
  add_spread(m, warnings);
  if (record.point.workload == "training") add_mean(record, warnings);
  add_probe(m, warnings);
  add_impossible(m, warnings);
  const Series* series = record.series("step");
  if (series == nullptr) return warnings;
  if (!all_timed(*series)) {
    warnings.push_back({"broken samples", "some of its samples are not times above 0", true});
    return warnings;
  }
  const Steps steps = steps_of(*series);
  add_few(steps.longest, warnings);
  if (record.point.sampling.duration_s == 0)  // else: sustained.h
    add_drift(steps.longest, is_on_gpu(record), warnings);
  add_entry_skew(record, steps.apart, warnings);
  return warnings;
}

}  // namespace shardmark
