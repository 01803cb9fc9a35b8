// How fast each strategy trains, what a step costs, and what it needs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/frame/known.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/costs.h"
#include "analysis/tables/tables.h"
#include "base/units.h"

namespace shardmark {
namespace {

// What is to be known of a ratio to `single`: its warnings, and the notes that explain them.
constexpr const char* kUnreliableSingle = "single unreliable";
constexpr const char* kPerhapsOne = "x single may be 1";
constexpr const char* kBelowSingle = "below single";

// The points of `single`, by what must be equal: machine, transport, ranks, nodes, family and batch per
// rank. The ranks of `single` do the same work without communication, so step / step of `single` is what a
// strategy costs.
class Replicas {
 public:
  explicit Replicas(const MergedPoints& points) {
    for (const MergedPoint& merged : points)
      if (is_training(merged) && is_replicas(merged)) points_[key(merged)] = &merged;
  }
  double ratio(const MergedPoint& merged) const {
    const MergedPoint* single = single_of(merged);
    return single == nullptr ? Measures::kNone : merged.measures.step_s / single->measures.step_s;
  }
  // Why the ratio should not be believed; nullptr if nothing speaks against it. A ratio below 1 is
  // suspicious, because no strategy waits less than ranks that never wait, and few compute less (a sharded
  // update does). The intervals say whether it may be chance. An unreliable row is marked by its own
  // warnings.
  const char* warning(const MergedPoint& merged) const {
    const MergedPoint* single = single_of(merged);
    if (single == nullptr || is_replicas(merged) || is_unreliable(merged)) return nullptr;
    if (is_unreliable(*single)) return kUnreliableSingle;
    if (!(ratio(merged) < 1)) return nullptr;
    return merged.measures.step_high_s < single->measures.step_low_s ? kBelowSingle : kPerhapsOne;
  }

 private:
  using Key = std::tuple<Location, std::string, int64_t>;
  static Key key(const MergedPoint& merged) {
    return {location_of(merged), merged.family, merged.point.training.batch_size};
  }
  const MergedPoint* single_of(const MergedPoint& merged) const {
    const auto found = points_.find(key(merged));
    return found == points_.end() ? nullptr : found->second;
  }
  std::map<Key, const MergedPoint*> points_;
};

std::string peak_text(double flops) { return format_number(flops / 1e9, 4) + " GFLOP/s"; }

// "FLOP/s of a rank: NVIDIA H200, 1 thread per rank, bf16: 652,000 GFLOP/s by a matrix product ..., 989,000
// by its data sheet"; peaks.h says which.
std::string peaks_note(const MergedPoints& points) {
  struct Peaks {
    double low, high, sheet;  // low, high: of the studies
  };
  std::map<std::string, Peaks> by_kind;  // by machine and precision
  for (const MergedPoint& merged : points) {
    const Measures& m = merged.measures;
    if (!is_training(merged) || std::isnan(m.peak_flops)) continue;
    Peaks& peaks = by_kind
                       .try_emplace(merged.machine + ", " + merged.point.training.product_type(),
                                    Peaks{m.peak_flops, m.peak_flops, m.datasheet_flops})
                       .first->second;
    peaks.low = std::min(peaks.low, m.peak_flops);
    peaks.high = std::max(peaks.high, m.peak_flops);
  }
  std::string note;
  for (const auto& [kind, peaks] : by_kind)
    note += fmt::format("{}{}: {}{} by a matrix product, the best of all starts of a study; {}",
                        note.empty() ? "FLOP/s of a rank: " : ". ", kind,
                        peaks.low < peaks.high ? peak_text(peaks.low) + " to " : "", peak_text(peaks.high),
                        std::isnan(peaks.sheet) ? "its data sheet is not known, so there is no MFU"
                                                : peak_text(peaks.sheet) + " by its data sheet");
  return note.empty() ? "" : note + ".";
}

std::string flops_note(const MergedPoints& points) {
  std::set<std::string> names;
  std::string note;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || !names.insert(merged.point.training.model.name).second) continue;
    const Choice& model = merged.point.training.model;
    if (const auto table = known_table(model))
      note += (note.empty() ? "Model FLOPs: " : "; ") + model.name + ": " + table->flops_formula;
  }
  return note;
}

// Where there are such points.
std::string few_steps_note(const MergedPoints& points) {
  const auto count = std::count_if(points.begin(), points.end(), [](const MergedPoint& merged) {
    return is_training(merged) && merged.measures.has_few_steps();
  });
  if (count == 0) return "";
  return fmt::format(
      "{} row{} fewer than 6 steps, too few for a 95 % interval: measure 10 or more (--steps 10).", count,
      count == 1 ? " is of" : "s are of");
}

std::string unverified_note(const MergedPoints& points) {
  std::map<std::string, int> reasons;
  for (const MergedPoint& merged : points)
    if (is_training(merged) && !merged.measures.verified.starts_with("equal"))
      ++reasons[merged.measures.verified.empty() ? "not recorded" : merged.measures.verified];
  std::string note;
  for (const auto& [reason, count] : reasons)
    note += fmt::format("{}{} ({} row{})", note.empty() ? "Not verified: " : "; ", reason, count,
                        count == 1 ? "" : "s");
  return note.empty() ? "" : note + ".";
}

Cell verified_cell(const MergedPoint& merged) {
  const std::string& verified = merged.measures.verified;
  return verified.starts_with("lossy") ? cells::words("lossy") : cells::yes_no(verified.starts_with("equal"));
}

Cell warning_cell_of(const MergedPoint& merged, const Replicas& replicas) {
  const Cell warnings = warning_cell(merged);
  const char* kind = replicas.warning(merged);
  return kind == nullptr ? warnings
                         : cells::words(warnings.text + (warnings.text.empty() ? "" : ", ") + kind);
}

std::vector<std::string> ratio_notes(const MergedPoints& points, const Replicas& replicas) {
  std::set<std::string_view> kinds;
  for (const MergedPoint& merged : points)
    if (const char* kind = is_training(merged) ? replicas.warning(merged) : nullptr) kinds.insert(kind);
  std::vector<std::string> notes;
  if (kinds.contains(kUnreliableSingle))
    notes.push_back(
        std::string(kUnreliableSingle) +
        ": the row of `single` that x single divides by has a warning, so the ratio says little.");
  if (kinds.contains(kPerhapsOne))
    notes.push_back(
        std::string(kPerhapsOne) +
        ": the ratio is below 1, but the 95 % intervals of both steps overlap (or one has too few steps for "
        "an interval), so the true ratio may be 1.");
  if (kinds.contains(kBelowSingle))
    notes.push_back(
        std::string(kBelowSingle) +
        ": the step is shorter than that of ranks that never communicate. Only a strategy that shards the "
        "update computes less than they do; otherwise the machine was not equally fast for both points.");
  return notes;
}

ColumnsOf<MergedPoint> step_columns(const Replicas& replicas) {
  const ColumnsOf<MergedPoint> x_single = {
      {{"x single", "", true, true},
       [&](const auto& merged) { return cells::number(replicas.ratio(merged), 3); },
       "step time / that of `single` on the same ranks with the same batch, which trains independent copies "
       "and never communicates."}};
  const ColumnsOf<MergedPoint> verified = {
      {{"verified", "", false, true},
       verified_cell,
       "the point gave the losses and gradient norms of one device on the same batch; lossy: it did not, "
       "because its reduction is lossy by design."},
      {{"repeats", "", true, true}, [](const auto& merged) { return cells::count(merged.repeats); }},
      {{"warnings", "", false, true}, [&](const auto& merged) { return warning_cell_of(merged, replicas); }}};
  return join(
      columns_of({{"step", "step time", "median"}, {"step_low", "step time"}, {"step_high", "step time"}}),
      x_single,
      columns_of({{"peak_bytes"},
                  {"exposed_time", "exposed", "time"},
                  {"exposed_share", "exposed", "of step"},
                  {"energy", "", "", true}}),
      verified);
}

}  // namespace

Table strategies_table(const MergedPoints& points, double price_per_gpu_hour) {
  const TrainingColumns labels(points);
  const Replicas replicas(points);
  Table table = make_table("strategies", "Strategies: how fast they train, and what they need",
                           join(labels.columns(), point_throughput_columns(),
                                cost_columns(points, price_per_gpu_hour), step_columns(replicas)),
                           training_points(points));
  table.explanations.emplace_back(
      "Global batch / samples/s is the average step; its inverse is what trainers print as it/s. Where it "
      "differs from the median by more than 10 % (also the uncertainty at which a median gets a warning), "
      "the row has the warning `mean differs`.");
  if (price_per_gpu_hour > 0)
    table.notes.push_back("Costs are at " + cells::number(price_per_gpu_hour).text + " per GPU-hour.");
  for (std::string& note : ratio_notes(points, replicas)) table.notes.push_back(std::move(note));
  for (const std::string& note : {few_steps_note(points), unverified_note(points)})
    if (!note.empty()) table.notes.push_back(note);
  for (const std::string& explanation : {peaks_note(points), flops_note(points)})
    if (!explanation.empty()) table.explanations.push_back(explanation);
  for (const std::string& note : labels.warning_notes()) table.notes.push_back(note);
  for (const std::string& explanation : labels.explanations()) table.explanations.push_back(explanation);
  return table;
}

}  // namespace shardmark
