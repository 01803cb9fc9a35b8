// Finds records that measured the same thing.
#include "analysis/frame/merged.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "analysis/frame/peaks.h"
#include "analysis/frame/repeats.h"
#include "base/natural_order.h"
#include "schema/axes.h"
#include "schema/content_hash.h"
#include "schema/settings.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// What stays of a point when repeat, transport, sampling (how long it was measured) and these axes are taken
// away. Not point_id, which writes JSON: this is done for each record.
template <class Keys>
std::string content_of(const Point& point, const Keys& without) {
  const bool is_collective = point.workload == "collective";
  std::string text = fmt::format("{} {} {}", point.workload, point.seed, point.training.scaling.empty());
  const auto add = [&](const AxisRow& axis) {
    const std::string_view key = axis.key;
    if (!axis.is_stored() || key == "transport") return;
    if (std::find(without.begin(), without.end(), key) != without.end()) return;
    visit_member(axis, point, [&]<class T>(const T& value) {
      text += '\n';
      if constexpr (std::is_same_v<T, Choice>)
        text += to_text(value);
      else
        text += fmt::format("{}", value);
    });
  };
  for (const AxisRow& axis : kCommonAxes) add(axis);
  if (is_collective)
    for (const AxisRow& axis : kCollectiveAxes) add(axis);
  else
    for (const AxisRow& axis : kTrainingAxes) add(axis);
  return hash_text(hash_bytes(text));
}

// A collective's family is its whole content.
std::string family_of(const Point& point) {
  return point.workload == "collective" ? content_of(point, Axes{})
                                        : content_of(point, Axes{"strategy", "ranks", "batch_size"});
}

struct NodeCounts {
  int64_t nodes = 0;
  int64_t ranks_per_node = 0;
};

// Where the first n ranks lie, by n; the last entry stands for every larger n.
std::vector<NodeCounts> node_counts_in(const Environment& environment) {
  // A point on n ranks uses the first n of the launch, so entry n counts the nodes of these. ranks_per_node
  // is 0 if the nodes have unequal numbers of them: nodes x the fullest node is then more than n.
  std::vector<NodeCounts> by_ranks(1);
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

// What all records of a study share.
struct Origin {
  const Environment* environment;
  std::string machine, transport;
  std::vector<NodeCounts> node_counts;
};

Origin origin_of(const Environment& environment) {
  return {&environment, machine_text(environment), environment.transport, node_counts_in(environment)};
}

MergedPoint unmeasured(const Point& point, const Origin& origin) {
  MergedPoint merged;
  merged.point = point;
  merged.machine =
      point.environment.empty() ? origin.machine : machine_text(*origin.environment, point.environment);
  merged.transport = point.transport.empty() ? origin.transport : point.transport;
  if (point.workload == "training") merged.strategy = to_text(point.training.strategy);
  merged.is_strong = point.training.scaling == "strong";
  merged.is_weak = !merged.is_strong;
  if (!point.training.chosen.empty()) merged.strategy += ": " + point.training.chosen;
  merged.family = fmt::format("{}\n{}\n{}", family_of(point), merged.machine, merged.transport);
  const auto ranks = static_cast<size_t>(std::max<int64_t>(point.ranks, 0));
  const NodeCounts& nodes = origin.node_counts[std::min(ranks, origin.node_counts.size() - 1)];
  merged.nodes = nodes.nodes;
  merged.ranks_per_node = nodes.nodes == 1 ? point.ranks : nodes.ranks_per_node;
  return merged;
}

using PointKey = std::tuple<Location, std::string, std::string, int64_t>;

PointKey point_key_of(const MergedPoint& merged) {
  return {location_of(merged), merged.family, merged.strategy, merged.point.training.batch_size};
}

// Points of which repeats are one.
struct Merging {
  std::vector<MergedPoint> points;
  std::map<PointKey, size_t> known;

  // Records with equal keys are repeats of one point. A weak and a strong sweep may ask for the same point,
  // so the point keeps both marks.
  MergedPoint& add(MergedPoint merged) {
    const auto [found, is_new] = known.try_emplace(point_key_of(merged), points.size());
    if (is_new) return points.emplace_back(std::move(merged));
    MergedPoint& repeated = points[found->second];
    repeated.is_weak |= merged.is_weak;
    repeated.is_strong |= merged.is_strong;
    return repeated;
  }
};

void find_names(std::vector<MergedPoint>& points) {
  std::set<std::string> machines;
  std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> by_ranks;
  for (const MergedPoint& merged : points) {
    machines.insert(merged.machine);
    by_ranks[merged.point.ranks].emplace(merged.nodes, merged.ranks_per_node);
  }
  // Names say nodes only if they tell points apart: as many ranks on different nodes.
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
    if (axis.hides_default)
      key.emplace_back(!is_default(axis, p));  // first, whatever comes before it in the alphabet
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
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.family) < std::tie(b.first, b.second.family);
  });
  points.clear();
  for (auto& [key, merged] : keyed) points.push_back(std::move(merged));
}

}  // namespace

std::string computing_family(const Point& point) {
  static const std::set<std::string> others =
      with_layout_axes({"save", "strategy", "gathers", "ranks", "batch_size", "accumulation"});
  return content_of(point, others);
}

std::string series_key(const MergedPoint& merged, Axes over) {
  const auto is_over = [&](std::string_view key) {
    return std::find(over.begin(), over.end(), key) != over.end();
  };
  std::string key = fmt::format("{}\n{}", content_of(merged.point, over), merged.machine);
  if (!is_over("transport")) key += "\n" + merged.transport;
  if (!is_over("strategy")) key += "\n" + merged.point.training.chosen;
  if (!is_over("ranks")) key += fmt::format("\n{} {}", merged.nodes, merged.ranks_per_node);
  return key;
}

std::vector<MergedPoint> one_for_each_step(std::vector<MergedPoint> points) {
  const auto is_plain = [](const MergedPoint& merged) { return merged.point.training.save.name == "none"; };
  std::map<std::string, const MergedPoint*> kept;
  for (const MergedPoint& merged : points) {
    const MergedPoint*& one = kept[series_key(merged, {"save"})];
    if (one == nullptr || (is_plain(merged) && !is_plain(*one))) one = &merged;
  }
  std::vector<MergedPoint> left;
  for (MergedPoint& merged : points)
    if (kept.at(series_key(merged, {"save"})) == &merged) left.push_back(std::move(merged));
  return left;
}

std::string machine_text(const Environment& environment) { return machine_text(environment, ""); }

std::string machine_text(const Environment& environment, const std::string& settings) {
  const std::set<std::string> devices(environment.devices.begin(), environment.devices.end());
  const std::string names = devices.empty() ? "unknown device" : fmt::format("{}", fmt::join(devices, " + "));
  Settings others = settings_from_text(settings);
  const auto node = others.extract("threads");
  const std::string threads = node.empty() ? std::to_string(environment.threads_per_rank) : node.mapped();
  const bool says_threads = threads != "0";  // 0: its points say how many, or nobody does
  return names +
         (says_threads ? fmt::format(", {} thread{} per rank", threads, threads == "1" ? "" : "s") : "") +
         (others.empty() ? "" : ", " + to_text(others));
}

std::string operation_text(const CollectivePoint& point) {
  const bool is_plain = point.reduction == "sum" || point.reduction == "none";
  return point.operation + (is_plain ? "" : " " + point.reduction) +
         (point.parts == "equal" ? "" : " " + brief_text("parts", point.parts));
}

MergedPoint as_merged(const Record& record, const Environment& environment) {
  MergedPoint merged = unmeasured(record.point, origin_of(environment));
  merged.repeats = 1;
  merged.measures = record.measures;
  return merged;
}

std::vector<MergedPoint> merge_repeats(const std::vector<StudyData>& studies) {
  Merging merging;
  std::vector<MergedPoint>& points = merging.points;
  for (const StudyData& study : studies) {
    const Origin origin = origin_of(study.environment);
    for (const Record& record : study.records) {
      const Point& p = record.point;
      // Runs of `train` have a table of their own.
      if (record.outcome != Outcome::ok || !is_known_workload(p) || p.workload == "train") continue;
      MergedPoint& merged = merging.add(unmeasured(p, origin));
      merged.records.push_back(&record);
      merged.environments.push_back(&study.environment);
    }
  }
  for (MergedPoint& merged : points) combine_repeats(merged);
  find_names(points);
  find_utilization(points);
  sort(points);
  return std::move(points);
}

std::vector<MergedPoint> merge_planned(const std::vector<const Point*>& points) {
  Merging merging;
  const Environment nowhere;
  for (const Point* point : points) {
    MergedPoint merged = unmeasured(*point, origin_of(nowhere));
    merged.machine = point->environment;
    merging.add(std::move(merged));
  }
  sort(merging.points);
  return std::move(merging.points);
}

}  // namespace shardmark
