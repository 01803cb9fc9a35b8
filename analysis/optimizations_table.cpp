// What changing the way gradients are reduced gains: bucketing, compression, hierarchical all-reduce, against
// one all-reduce of everything.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

constexpr size_t kTransportColumn = 1;  // of TrainingColumns: here it stands beside the strategy

using Variants = std::vector<const MergedPoint*>;  // points that differ in reduction and transport alone

bool is_hierarchical(const MergedPoint& merged) { return merged.transport.starts_with("hierarchical"); }

bool is_plain(const MergedPoint& merged) {
  const Options& options = merged.point.training.strategy.options;
  return !options.contains("reduction") || options.at("reduction") == "plain";
}

bool is_measured_ddp(const MergedPoint& merged) {
  return is_training(merged) && strategies::traits_of(merged.point.training.strategy.name).buckets &&
         std::isfinite(merged.measures.communication_only_s);
}

// In the order of their first points.
std::vector<Variants> variants_of(const MergedPoints& points) {
  std::map<std::string, size_t> known;
  std::vector<Variants> groups;
  for (const MergedPoint& merged : points) {
    if (!is_measured_ddp(merged)) continue;
    const std::string family = merged.family.substr(0, merged.family.size() - merged.transport.size());
    const std::string key =
        family + std::to_string(merged.point.ranks) + " " + std::to_string(merged.point.training.batch_size);
    const auto [found, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(&merged);
  }
  return groups;
}

// The plain reduction in the fewest operations, over the flat transport; nullptr where none was measured.
const MergedPoint* baseline_of(const Variants& variants) {
  const MergedPoint* baseline = nullptr;
  for (const MergedPoint* merged : variants) {
    if (!is_plain(*merged) || is_hierarchical(*merged)) continue;
    if (baseline == nullptr || merged->measures.num_operations < baseline->measures.num_operations)
      baseline = merged;
  }
  return baseline;
}

// In the words of those who offer it: what of the three a row does.
std::string kind_of(const MergedPoint& merged, const MergedPoint& baseline) {
  if (&merged == &baseline) return "baseline";
  std::string kind;
  const auto add = [&](const char* word) { kind += (kind.empty() ? "" : ", ") + std::string(word); };
  if (is_hierarchical(merged)) add("hierarchical");
  if (!is_plain(merged)) add("compression");
  if (is_plain(merged) && merged.measures.num_operations > baseline.measures.num_operations) add("bucketing");
  return kind;
}

std::vector<Cell> gains(const MergedPoint& merged, const MergedPoint& baseline) {
  const Measures &m = merged.measures, &base = baseline.measures;
  const double gradient_bytes = known_value_bytes(baseline.point);
  return {cells::words(kind_of(merged, baseline)),
          cells::number(gradient_bytes / m.communication_only_s / 1e9, 3),
          cells::milliseconds(m.communication_only_s),
          cells::number(base.communication_only_s / m.communication_only_s, 3),
          cells::milliseconds(m.step_s),
          cells::number(base.step_s / m.step_s, 3),
          cells::number(m.traffic_bytes / 1e6),
          cells::number(base.traffic_bytes / m.traffic_bytes, 3),
          cells::number(gradient_bytes / known_value_bytes(merged.point), 3),
          cells::number(m.between_nodes_bytes / 1e6),
          cells::words(m.verified.substr(0, m.verified.find_first_of(" :"))),
          cells::number(m.verify_error, 2)};
}

std::vector<Column> columns() {
  std::vector<Column> labels = TrainingColumns::columns();
  labels.erase(labels.begin() + kTransportColumn);
  return concat<Column>({std::move(labels),
                         {{"over", "", false}},
                         {{"optimization", "", false},
                          {"effective", "GB/s", true, false, "communication alone"},
                          {"time", "ms", true, false, "communication alone"},
                          {"speed-up", "x", true, false, "communication alone"},
                          {"time", "ms", true, false, "step"},
                          {"speed-up", "x", true, false, "step"},
                          {"counted", "MB", true, false, "moved"},
                          {"fewer", "x", true, false, "moved"},
                          {"gradient itself", "x smaller"},
                          {"between nodes", "MB", true, true},
                          {"verified", "", false},
                          {"off by", ""}},
                         TrainingColumns::mark_columns()});
}

}  // namespace

Table optimizations_table(const MergedPoints& points) {
  Table table{"optimizations",
              "Optimizations: ways to reduce gradients, against one all-reduce of everything",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns - 1,
              TrainingColumns::kNumFamilyColumns - 1};
  const TrainingColumns labels(points);
  for (Variants& variants : variants_of(points)) {
    const MergedPoint* baseline = baseline_of(variants);
    if (variants.size() < 2 || baseline == nullptr) continue;
    std::stable_partition(variants.begin(), variants.end(),
                          [&](const MergedPoint* merged) { return merged == baseline; });
    for (const MergedPoint* merged : variants) {
      std::vector<Cell> row = labels.cells(*merged);
      const Cell transport = row[kTransportColumn];
      row.erase(row.begin() + kTransportColumn);
      row.push_back(transport);
      table.rows.push_back(
          concat<Cell>({std::move(row), gains(*merged, *baseline), TrainingColumns::mark_cells(*merged)}));
    }
  }
  table.notes = {
      "baseline: the plain reduction in the fewest operations; bucketing: in more of them; compression: "
      "fewer "
      "bytes; hierarchical: in the node, between nodes, in the node. speed-up: the baseline's time / the "
      "row's.",
      "communication alone: the operations of a step without the step (median of the slowest rank). "
      "Compressing "
      "and decompressing is computing, and no part of it; the step holds everything. effective: bytes of the "
      "uncompressed gradient / that time; GB = 10^9 bytes.",
      "moved: law bytes per rank and step, as counted; fewer: the baseline's / the row's. gradient itself: "
      "how "
      "much smaller a rank's gradient becomes, before indices, scales and the exchange with all ranks are "
      "added: the \"100x\" of top-k at ratio 0.01 is this number, not the bytes on the wire.",
      "verified: against one device; lossy: the reduction leaves something out by choice. off by: relative "
      "difference of the loss after the first update, or of losses and gradient norms where they must be "
      "equal.",
  };
  if (std::any_of(points.begin(), points.end(),
                  [](const auto& merged) { return std::isfinite(merged.measures.between_nodes_bytes); }))
    table.notes.emplace_back(
        "between nodes: of those bytes, on the rank that sends most, as a hierarchical all-reduce counts "
        "them.");
  return table;
}

}  // namespace shardmark
