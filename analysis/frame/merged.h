// The points of one or several studies with their repeats merged: what every table starts from.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/frame/estimate.h"
#include "analysis/frame/warnings.h"
#include "schema/study.h"
#include "schema/throughput.h"
#include "strategies/traits.h"

namespace shardmark {

// One configuration that was measured `repeats` times with outcome ok.
struct MergedPoint {
  Point point;          // of the first repeat
  std::string machine;  // devices and threads per rank: points of different machines are never merged
  std::string transport;
  std::string strategy;  // with every option, and what auto chose; "" for a collective
  std::string family;    // equal for points that differ in nothing but strategy, ranks and batch size
  bool is_weak = false, is_strong = false;  // the scaling of the sweeps that ask for it: one or both
  // Nodes that its ranks lie on, 0 where the study does not say; ranks on each, 0 where they differ. Points
  // on other nodes are other points.
  int64_t nodes = 0;
  int64_t ranks_per_node = 0;
  // Whether the report holds points of as many ranks on other nodes, or of other machines: then names say so.
  bool names_nodes = false;
  bool names_machine = false;
  int64_t repeats = 0;
  // Medians over the repeats (of rates: the reciprocal of the median of reciprocals, for costs are what may
  // be averaged). step_low_s and step_high_s: of one repeat, its own interval; of 2 to 5, the hull of their
  // intervals, where all have one; from 6, the interval of the repeats' medians. loss_last: where all repeats
  // took as many steps.
  Measures measures;
  // Share of the FLOP/s that a matrix product reaches on its machine (peaks.h).
  double of_matmul = Measures::kNone;
  // The step in each launch that measured it, from its repeats there, with its interval likewise. A copy of a
  // record is no further launch.
  std::vector<Estimate> launches;
  std::vector<Warning> warnings;       // of at least half of its repeats
  std::vector<const Record*> records;  // its repeats, with their samples; the studies must outlive them
  std::vector<const Environment*> environments;  // of each repeat
};

// What all points of a series share that runs over these axes (keys of schema/axes.h): every other axis, what
// auto chose, the seed, machine and transport; but over "ranks" the nodes and the ranks on each, too. All
// tables, fits and plots join points by it, or by the family with the strategy, ranks and batch size.
using Axes = std::initializer_list<std::string_view>;
std::string series_key(const MergedPoint& merged, Axes over);

// Where a point was measured: machine, transport, ranks, nodes, ranks on each. Points are compared on as many
// ranks only where this is equal.
using Location = std::tuple<std::string, std::string, int64_t, int64_t, int64_t>;
inline Location location_of(const MergedPoint& merged) {
  return {merged.machine, merged.transport, merged.point.ranks, merged.nodes, merged.ranks_per_node};
}

// A record by itself, whatever its outcome.
MergedPoint as_merged(const Record& record, const Environment& environment);

// Ordered by machine, transport, model, data, optimizer, precision, batch size, ranks, strategy; collectives
// by operation, ranks, type, reduction, bytes.
std::vector<MergedPoint> merge_repeats(const std::vector<StudyData>& studies);

// Equal for training points whose blocks compute the same, whatever their strategy, ranks, batch size,
// micro-batches and layout.
std::string computing_family(const Point& point);
// What is saved after the steps does not change them: of points that differ in `save` alone, the one without
// it is kept, or else the first.
std::vector<MergedPoint> one_for_each_step(std::vector<MergedPoint> points);

// The same of training points that nobody has measured.
std::vector<MergedPoint> merge_planned(const std::vector<const Point*>& points);

// Steps that each of them took, warm-up included; nothing where they differ.
std::optional<int64_t> steps_in_each(const std::vector<const Record*>& records);

std::string machine_text(const Environment& environment);  // "NVIDIA H200, 4 threads per rank"
// The same with a point's settings, "..., NCCL_ALGO=Ring": they are part of its machine, so that nothing
// joins points of different ones.
std::string machine_text(const Environment& environment, const std::string& settings);

inline Throughput throughput_of(const MergedPoint& merged) {
  Throughput speed = throughput_of(merged.point, merged.measures);
  speed.of_matmul = merged.of_matmul;
  return speed;
}

inline bool is_training(const MergedPoint& merged) { return merged.point.workload == "training"; }
// A collective that had its ranks to itself; together.h has the others.
inline bool is_collective(const MergedPoint& merged) {
  return merged.point.workload == "collective" && merged.point.collective.beside == "alone";
}
// Its operation, with the reduction where it is no sum and the parts where they are not equal.
std::string operation_text(const CollectivePoint& point);
inline bool is_replicas(const MergedPoint& merged) {
  return !strategies::traits_of(merged.point.training.strategy.name).communicates;
}
// On several ranks `single` trains as many models, not one.
inline bool trains_one_model(const MergedPoint& merged) {
  return !is_replicas(merged) || merged.point.ranks == 1;
}

// No fit uses such a point; tables show and mark it.
inline bool is_unreliable(const MergedPoint& merged) {
  for (const Warning& warning : merged.warnings)
    if (warning.excludes) return true;
  return false;
}

}  // namespace shardmark
