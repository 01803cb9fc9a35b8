// What changing the way gradients are reduced gains: bucketing, compression, hierarchical all-reduce, against
// one all-reduce of everything.
#include <cmath>

#include "analysis/frame/known.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

bool is_hierarchical(const MergedPoint& merged) { return merged.transport.starts_with("hierarchical"); }

bool is_plain(const MergedPoint& merged) {
  const Options& options = merged.point.training.strategy.options;
  return !options.contains("reduction") || options.at("reduction") == "plain";
}

bool is_measured_ddp(const MergedPoint& merged) {
  return strategies::traits_of(merged.point.training.strategy.name).buckets &&
         std::isfinite(merged.measures.communication_only_s);
}

// The variant that all others are held against: uncompressed, over a transport without a hierarchy, and in
// the fewest operations, which is nearest to one all-reduce of the whole gradient. nullptr if none was
// measured.
const MergedPoint* baseline_of(const PointList& variants) {
  const MergedPoint* baseline = nullptr;
  for (const MergedPoint* merged : variants) {
    if (!is_plain(*merged) || is_hierarchical(*merged)) continue;
    if (baseline == nullptr || merged->measures.num_operations < baseline->measures.num_operations)
      baseline = merged;
  }
  return baseline;
}

struct Variant {
  const MergedPoint *merged, *baseline;
};

std::vector<Variant> rows_of(const MergedPoints& points) {
  std::vector<Variant> rows;
  // Variants are points that differ in nothing but the strategy and the transport. The baseline is the
  // first row of its group.
  for (const PointList& variants : groups_of(training_points(points, is_measured_ddp), [](const auto& one) {
         return series_key(one, {"strategy", "transport"});
       })) {
    const MergedPoint* baseline = baseline_of(variants);
    if (variants.size() < 2 || baseline == nullptr) continue;
    rows.push_back({baseline, baseline});
    for (const MergedPoint* merged : variants)
      if (merged != baseline) rows.push_back({merged, baseline});
  }
  return rows;
}

// In the words of those who offer it: what of the three a row does.
Cell kind_cell(const Variant& row) {
  if (row.merged == row.baseline) return cells::words("baseline");
  std::string kind;
  const auto add = [&](const char* word) { kind += (kind.empty() ? "" : ", ") + std::string(word); };
  if (is_hierarchical(*row.merged)) add("hierarchical");
  if (!is_plain(*row.merged)) add("compression");
  if (is_plain(*row.merged) && row.merged->measures.num_operations > row.baseline->measures.num_operations)
    add("bucketing");
  return cells::words(kind);
}

// The baseline's number / the row's.
auto ratio_of(double Measures::*measure) {
  return [measure](const Variant& row) {
    return cells::number(row.baseline->measures.*measure / row.merged->measures.*measure, 3);
  };
}

constexpr const char* kSpeedUp = "the baseline's time / the row's.";

// Marked if the launches do not tell which of the two is faster, whichever has the shorter median.
Cell step_speed_up(const Variant& row) {
  Cell cell = ratio_of(&Measures::step_s)(row);
  if (row.merged == row.baseline) return cell;
  PointList both = {row.merged, row.baseline};
  if (both[1]->measures.step_s < both[0]->measures.step_s) std::swap(both[0], both[1]);
  if (num_perhaps_fastest(both) > 1) cell.text += " ?";
  return cell;
}

ColumnsOf<Variant> time_columns() {
  return {{{"over", "", false}, [](const auto& row) { return cells::words(row.merged->transport); }},
          {{"optimization", "", false},
           kind_cell,
           "baseline: the uncompressed reduction over a flat transport in the fewest operations, with the "
           "same model, batch and ranks; bucketing: in more operations; compression: a reduction that sends "
           "fewer bytes; hierarchical: within the node, between nodes, within the node."},
          {{"effective", "GB/s", true, false, "communication alone"},
           [](const auto& row) {
             // All rows count the bytes of the uncompressed gradient, so a compressed reduction has a
             // higher rate if it takes less time.
             const double gradient_bytes = known_value_bytes(row.baseline->point);
             return cells::number(gradient_bytes / row.merged->measures.communication_only_s / 1e9, 3);
           },
           "bytes of the uncompressed gradient / that time; GB = 10^9 bytes."},
          {{"time", "ms", true, false, "communication alone"},
           [](const auto& row) { return cell_of(quantity("communication_only_time"), *row.merged); },
           "the operations of a step without its computing (median of the slowest rank). Compression and "
           "decompression count as computing and are not included; the step includes everything."},
          {{"speed-up", "x", true, false, "communication alone"},
           ratio_of(&Measures::communication_only_s),
           kSpeedUp},
          {{"time", "ms", true, false, "step"},
           [](const auto& row) { return cell_of(quantity("step"), *row.merged); },
           std::string(quantity("step").definition)},
          {{"speed-up", "x", true, false, "step"},
           step_speed_up,
           std::string(kSpeedUp) +
               " ?: the launches do not show which of the two is faster; fewer than 3 never do."}};
}

ColumnsOf<Variant> byte_columns() {
  const ColumnsOf<Variant> smaller = {
      {{"fewer", "x", true, false, "traffic"},
       ratio_of(&Measures::traffic_bytes),
       "the baseline's / the row's."},
      {{"gradient itself", "x smaller"},
       [](const auto& row) {
         return cells::number(known_value_bytes(row.baseline->point) / known_value_bytes(row.merged->point),
                              3);
       },
       "how much smaller a rank's gradient becomes, before indices, scales and the exchange with all ranks "
       "are added: the \"100x\" of top-k at ratio 0.01 is this number, not the bytes on the wire."}};
  const ColumnsOf<Variant> verified = {
      {{"verified", "", false},
       [](const auto& row) {
         const std::string& verified = row.merged->measures.verified;
         return cells::words(verified.substr(0, verified.find_first_of(" :")));
       },
       "against one device; lossy: the reduction is lossy by design."},
      {{"difference", ""},
       [](const auto& row) { return cells::number(row.merged->measures.verify_error, 2); },
       "relative difference of the loss after the first update, or of losses and gradient norms where they "
       "must be equal."}};
  return join(columns_of<Variant>({{"traffic_bytes", "traffic"}}), smaller,
              columns_of<Variant>({{"between_nodes_bytes", "", "", true}}), verified);
}

}  // namespace

Table optimizations_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  ColumnsOf<MergedPoint> setting = without(labels.family(), {"transport"});
  return make_table("strategies.optimizations",
                    "Optimizations: ways to reduce gradients, against one all-reduce of everything",
                    join(via(&Variant::merged, starting(Starts::section, std::move(setting))),
                         via(&Variant::merged, labels.batch_ranks_strategy()), time_columns(), byte_columns(),
                         via(&Variant::merged, TrainingColumns::warnings())),
                    rows_of(points));
}

}  // namespace shardmark
