// Finds records that measured the same thing and takes the medians of their measures.
#include "analysis/merged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "analysis/compare/launches.h"
#include "analysis/quality/peaks.h"
#include "base/natural_order.h"
#include "base/stats.h"
#include "schema/axes.h"
#include "schema/fields.h"

namespace shardmark {
namespace {

using Records = std::vector<const Record*>;

// What stays of a point when repeat, transport, sampling (how long it was measured) and, for training,
// strategy, ranks, batch size and the suite's way of writing the batch are taken away.
std::string family_of(const Point& point) {
  Point rest = point;
  rest.repeat = 0;
  rest.sampling = {};
  rest.transport.clear();
  if (point.workload == "training") {
    rest.ranks = 0;
    rest.training.strategy = {};
    rest.training.batch_size = 0;
    rest.training.scaling.clear();
  }
  return point_id(rest);
}

struct Placement {
  int64_t nodes = 0;
  int64_t ranks_per_node = 0;
};

// Where the first n ranks lie, by n; the last entry stands for every larger n.
std::vector<Placement> placements_in(const Environment& environment) {
  std::vector<Placement> by_ranks(1);
  std::map<std::string, int64_t> ranks_on;
  int64_t most = 0, ranks = 0;
  for (const std::string& node : environment.rank_nodes) {
    most = std::max(most, ++ranks_on[node]);
    const auto nodes = static_cast<int64_t>(ranks_on.size());
    by_ranks.push_back({nodes, most * nodes == ++ranks ? most : 0});
  }
  by_ranks.push_back({environment.nodes.size() == 1 ? 1 : 0, 0});
  return by_ranks;
}

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

Interval step_interval(const Records& records) {
  std::vector<double> steps;
  Interval hull{Measures::kNone, Measures::kNone};
  for (const Record* record : records) {
    const Measures& m = record->measures;
    if (!std::isfinite(m.step_s)) continue;
    steps.push_back(m.step_s);
    hull = {std::fmin(hull.low, m.step_low_s), std::fmax(hull.high, m.step_high_s)};  // a NaN loses
  }
  return steps.size() < 6 ? hull : median_interval(steps);
}

// Of elements that were wrong; worse than none: that nobody looked.
double badness(int64_t num_wrong) { return num_wrong < 0 ? 0.5 : static_cast<double>(num_wrong); }

Measures merged_measures(const Records& records) {
  if (records.size() == 1) return records.front()->measures;
  Measures merged = medians(records);
  const Interval interval = step_interval(records);
  merged.step_low_s = interval.low;
  merged.step_high_s = interval.high;
  for (const Record* record : records) {
    const Measures& m = record->measures;
    merged.oversubscribed |= m.oversubscribed;
    merged.unaccounted |= m.unaccounted;
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

// What all records of a study share.
struct Origin {
  std::string machine, transport;
  std::vector<Placement> placements;
};

Origin origin_of(const Environment& environment) {
  return {machine_text(environment), environment.transport, placements_in(environment)};
}

MergedPoint unmeasured(const Point& point, const Origin& origin) {
  MergedPoint merged;
  merged.point = point;
  merged.machine = origin.machine;
  merged.transport = point.transport.empty() ? origin.transport : point.transport;
  if (point.workload == "training") merged.strategy = to_text(point.training.strategy);
  if (!point.training.chosen.empty()) merged.strategy += ": " + point.training.chosen;
  merged.family = fmt::format("{}\n{}\n{}", family_of(point), merged.machine, merged.transport);
  const auto ranks = static_cast<size_t>(std::max<int64_t>(point.ranks, 0));
  const Placement& placement = origin.placements[std::min(ranks, origin.placements.size() - 1)];
  merged.nodes = placement.nodes;
  merged.ranks_per_node = placement.nodes == 1 ? point.ranks : placement.ranks_per_node;
  return merged;
}

using PointKey = std::tuple<Location, std::string, std::string, int64_t>;

PointKey point_key_of(const MergedPoint& merged) {
  return {location_of(merged), merged.family, merged.strategy, merged.point.training.batch_size};
}

void find_names(std::vector<MergedPoint>& points) {
  std::set<std::string> machines;
  std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> by_ranks;
  for (const MergedPoint& merged : points) {
    machines.insert(merged.machine);
    by_ranks[merged.point.ranks].emplace(merged.nodes, merged.ranks_per_node);
  }
  const bool several_nodes = std::any_of(by_ranks.begin(), by_ranks.end(),
                                         [](const auto& nodes) { return nodes.second.size() > 1; });
  for (MergedPoint& merged : points) {
    merged.names_nodes = several_nodes;
    merged.names_machine = machines.size() > 1;
  }
}

using OrderKey = std::vector<std::variant<bool, int64_t, double, std::string, NaturalKey>>;

// The settings of a training point in the order of the tables' columns, then what else tells points apart.
OrderKey order_of(const MergedPoint& merged) {
  const Point& p = merged.point;
  OrderKey key = {p.workload, merged.machine, merged.transport, p.collective.operation};
  const auto add = [&](const AxisRow& axis) {
    visit_member(axis, p, [&]<class T>(const T& value) {
      if constexpr (std::is_same_v<T, Choice>)
        key.emplace_back(natural_key(to_text(value)));
      else
        key.emplace_back(value);
    });
  };
  for (const bool of_sections : {true, false}) {
    for (const AxisRow& axis : kTrainingAxes)
      if (axis.heading != nullptr && axis.is_section == of_sections) add(axis);
    if (of_sections) key.emplace_back(p.seed);
  }
  key.insert(key.end(), {p.training.batch_size, p.ranks, merged.nodes, merged.ranks_per_node});
  for (const AxisRow& axis : kCollectiveAxes) add(axis);
  key.insert(key.end(), {!is_replicas(merged), natural_key(merged.strategy)});
  return key;
}

void sort(std::vector<MergedPoint>& points) {
  std::vector<std::pair<OrderKey, MergedPoint>> keyed;
  keyed.reserve(points.size());
  for (MergedPoint& merged : points) keyed.emplace_back(order_of(merged), std::move(merged));
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  points.clear();
  for (auto& [key, merged] : keyed) points.push_back(std::move(merged));
}

}  // namespace

std::optional<int64_t> steps_in_each(const std::vector<const Record*>& records) {
  const auto steps_of = [](const Record* one) { return one->measures.num_steps + one->measures.num_warmup; };
  for (const Record* one : records)
    if (steps_of(one) != steps_of(records.front())) return std::nullopt;
  return records.empty() ? std::nullopt : std::optional(steps_of(records.front()));
}

std::string machine_text(const Environment& environment) {
  const std::set<std::string> devices(environment.devices.begin(), environment.devices.end());
  const std::string names = devices.empty() ? "unknown device" : fmt::format("{}", fmt::join(devices, " + "));
  const int64_t threads = environment.threads_per_rank;
  return fmt::format("{}, {} thread{} per rank", names, threads, threads == 1 ? "" : "s");
}

MergedPoint as_merged(const Record& record, const Environment& environment) {
  MergedPoint merged = unmeasured(record.point, origin_of(environment));
  merged.repeats = 1;
  merged.measures = record.measures;
  return merged;
}

std::vector<MergedPoint> merge_repeats(const std::vector<StudyData>& studies) {
  std::vector<MergedPoint> points;
  std::vector<Records> repeats;
  std::map<PointKey, size_t> known;
  for (const StudyData& study : studies) {
    const Origin origin = origin_of(study.environment);
    for (const Record& record : study.records) {
      const Point& p = record.point;
      if (record.outcome != Outcome::ok || !is_known_workload(p) || p.workload == "train") continue;
      MergedPoint merged = unmeasured(record.point, origin);
      const auto [found, is_new] = known.try_emplace(point_key_of(merged), points.size());
      if (is_new) {
        points.push_back(std::move(merged));
        repeats.emplace_back();
      }
      repeats[found->second].push_back(&record);
      points[found->second].environments.push_back(&study.environment);
    }
  }
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].repeats = static_cast<int64_t>(repeats[i].size());
    points[i].measures = merged_measures(repeats[i]);
    points[i].launches = launches_of(repeats[i], points[i].environments);
    points[i].warnings = merged_warnings(repeats[i]);
    points[i].records = std::move(repeats[i]);
  }
  find_names(points);
  use_best_peaks(points);
  sort(points);
  return points;
}

}  // namespace shardmark
