#include "analysis/frame/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "analysis/frame/launches.h"
#include "base/stats.h"
#include "schema/fields.h"

namespace shardmark {
namespace {

using Records = std::vector<const Record*>;

// The median of what was measured. Rates are merged by their reciprocals: seconds per sample add up over
// work, samples per second do not.
double merged_value(std::vector<double> values, bool rate) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return Measures::kNone;
  if (!rate) return median(std::move(values));
  for (double& value : values) value = 1 / value;
  return 1 / median(std::move(values));
}

// The medians of all floating-point measures, found through the field table so that a new field is merged as
// well.
Measures medians(const Records& records) {
  std::vector<std::vector<double>> values;
  Record merged = {};
  merged.measures = records.front()->measures;
  for (const Record* record : records) {
    size_t field = 0;
    visit_fields(*record, [&]<class T>(auto, auto, auto, const T& member) {
      if constexpr (std::is_same_v<T, double>) {
        if (field == values.size()) values.emplace_back();
        values[field++].push_back(member);
      }
    });
  }
  size_t field = 0;
  visit_fields(merged, [&]<class T>(auto, std::string_view unit, auto, T& member) {
    if constexpr (std::is_same_v<T, double>)
      member = merged_value(std::move(values[field++]), unit.ends_with("/s"));
  });
  return merged.measures;
}

// The hull is none as soon as one repeat has no interval, for that repeat may lie anywhere.
Interval step_interval(const Records& records) {
  std::vector<double> steps;
  Interval hull{std::numeric_limits<double>::infinity(), 0};
  bool all_have = true;
  for (const Record* record : records) {
    const Measures& m = record->measures;
    if (!std::isfinite(m.step_s)) continue;
    steps.push_back(m.step_s);
    all_have &= m.has_interval();
    hull = {std::min(hull.low, m.step_low_s), std::max(hull.high, m.step_high_s)};
  }
  if (steps.size() >= kLeastForInterval) return median_interval(steps);
  return all_have && !steps.empty() ? hull : Interval{Measures::kNone, Measures::kNone};
}

// Orders numbers of wrong elements: that nobody looked is worse than that none was wrong.
double badness(int64_t num_wrong) { return num_wrong < 0 ? 0.5 : static_cast<double>(num_wrong); }

bool is_worse_network(const Measures& a, const Measures& b) {
  return a.network_retransmits + a.network_losses > b.network_retransmits + b.network_losses;
}

Measures merged_measures(const Records& records) {
  Measures merged = records.size() == 1 ? records.front()->measures : medians(records);
  if (records.front()->point.ranks < 2 || merged.busbw_gb_s == 0)  // nothing goes over a bus
    merged.busbw_gb_s = Measures::kNone;
  if (records.size() == 1) return merged;
  const Interval interval = step_interval(records);
  merged.step_low_s = interval.low;
  merged.step_high_s = interval.high;
  for (const Record* record : records) {
    const Measures& m = record->measures;
    merged.oversubscribed |= m.oversubscribed;
    merged.unaccounted |= m.unaccounted;
    if (is_worse_network(m, merged)) {  // the remarks of the repeat with most losses
      merged.network_ports = m.network_ports;
      merged.network_retransmits = m.network_retransmits;
      merged.network_losses = m.network_losses;
    }
    merged.network_idle_ports = std::max(merged.network_idle_ports, m.network_idle_ports);
    if (badness(m.num_wrong) > badness(merged.num_wrong)) merged.num_wrong = m.num_wrong;
    if (!m.verified.starts_with("equal")) merged.verified = m.verified;  // a repeat unverified: the point is
  }
  if (!steps_in_each(records)) merged.loss_last = Measures::kNone;
  return merged;
}

// A launch measures a record once, so another time of the same record is of another launch, even where both
// began in the same second.
std::vector<Estimate> launches_of(const Records& records,
                                  const std::vector<const Environment*>& environments) {
  std::map<std::string, std::map<std::string, const Record*>> launches;  // by name, then record
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = *records[i];
    if (!std::isfinite(record.measures.step_s)) continue;
    std::string name = launch_name(*environments[i], record);
    const auto is_other = [&](const std::string& launch) {
      const auto [known, is_new] = launches[launch].try_emplace(record.id, &record);
      return known->second->measures.step_s != record.measures.step_s;
    };
    while (is_other(name)) name += "'";
  }
  std::vector<Estimate> steps;
  for (const auto& [name, by_id] : launches) {
    Records repeats;
    std::vector<double> values;
    for (const auto& [id, record] : by_id) {
      repeats.push_back(record);
      values.push_back(record->measures.step_s);
    }
    const Interval interval = step_interval(repeats);
    steps.push_back({median(std::move(values)), interval.low, interval.high});
  }
  return steps;
}

// One for each kind, in the words of the first repeat that has it.
std::vector<Warning> merged_warnings(const Records& records) {
  std::vector<std::pair<Warning, size_t>> counted;
  for (const Record* record : records)
    for (Warning& warning : warnings_of(*record)) {
      const auto known = std::find_if(counted.begin(), counted.end(),
                                      [&](const auto& one) { return one.first.kind == warning.kind; });
      if (known == counted.end())
        counted.emplace_back(std::move(warning), 1);
      else
        ++known->second;
    }
  std::vector<Warning> warnings;
  for (auto& [warning, count] : counted) {
    if (2 * count < records.size()) continue;
    if (records.size() > 1) warning.words += fmt::format(" (in {} of {} repeats)", count, records.size());
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

// As they were measured, whatever the order of the studies: the first one stands for all in some numbers.
void order_repeats(MergedPoint& merged) {
  std::vector<std::pair<const Record*, const Environment*>> repeats;
  for (size_t i = 0; i < merged.records.size(); ++i)
    repeats.emplace_back(merged.records[i], merged.environments[i]);
  std::stable_sort(repeats.begin(), repeats.end(), [](const auto& a, const auto& b) {
    const auto key = [](const auto& one) {
      const double step_s = one.first->measures.step_s;
      return std::tuple<const std::string&, const std::string&, int64_t, const std::string&, double>(
          one.first->started, one.second->started, one.first->point.repeat, one.first->id,
          std::isnan(step_s) ? -1 : step_s);
    };
    return key(a) < key(b);
  });
  for (size_t i = 0; i < repeats.size(); ++i)
    std::tie(merged.records[i], merged.environments[i]) = repeats[i];
}

}  // namespace

void combine_repeats(MergedPoint& merged) {
  order_repeats(merged);
  merged.point = merged.records.front()->point;
  merged.repeats = std::ssize(merged.records);
  merged.measures = merged_measures(merged.records);
  merged.launches = launches_of(merged.records, merged.environments);
  merged.warnings = merged_warnings(merged.records);
}

std::optional<int64_t> steps_in_each(const std::vector<const Record*>& records) {
  const auto steps_of = [](const Record* one) { return one->measures.num_steps + one->measures.num_warmup; };
  for (const Record* one : records)
    if (steps_of(one) != steps_of(records.front())) return std::nullopt;
  return records.empty() ? std::nullopt : std::optional(steps_of(records.front()));
}

}  // namespace shardmark
