// The largest batch that fits, per strategy: from points that fit and points that ran out of memory.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/frame/known.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "strategies/activations.h"

namespace shardmark {
namespace {

// The largest batch of points that differ in batch size alone.
struct Largest {
  const MergedPoint* merged;
  int64_t fails;  // the smallest batch that ran out of memory
};

std::string series_of(const MergedPoint& merged) { return series_key(merged, {"batch_size"}); }

// The smallest batch of each series that ran out of memory.
std::map<std::string, int64_t> failures(const std::vector<StudyData>& studies) {
  std::map<std::string, int64_t> fails;
  for (const StudyData& study : studies)
    for (const Record& record : study.records) {
      if (record.outcome != Outcome::out_of_memory || record.point.workload != "training") continue;
      const auto [found, is_new] = fails.try_emplace(series_of(as_merged(record, study.environment)),
                                                     record.point.training.batch_size);
      found->second = std::min(found->second, record.point.training.batch_size);
    }
  return fails;
}

// A row for each series of batches in which some batch ran and some ran out of memory. A series of which
// every batch fitted has no largest one that anybody knows.
std::vector<Largest> rows_of(const std::vector<StudyData>& studies, const MergedPoints& points) {
  const auto fails = failures(studies);
  std::map<std::string, const MergedPoint*> largest;
  for (const MergedPoint* merged : training_points(points)) {
    const MergedPoint*& best = largest[series_of(*merged)];
    if (best == nullptr || merged->point.training.batch_size > best->point.training.batch_size) best = merged;
  }
  std::vector<Largest> rows;
  for (const MergedPoint* merged : training_points(points))
    if (const auto failed = fails.find(series_of(*merged));
        failed != fails.end() && largest[failed->first] == merged)
      rows.push_back({merged, failed->second});
  return rows;
}

// The batch that should just fit: what the run's limit leaves beside parameters, gradients, optimizer state
// and the strategy's slots, all by formula, is filled with the activations of the model's table. 0 if not
// known.
int64_t foretold(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  const double room = m.memory_limit_bytes - (m.predicted_peak_bytes() - m.predicted_activation_bytes);
  const auto point = known_point(merged.point);
  if (std::isnan(room) || !point) return 0;
  return strategies::largest_batch(strategies::RankStep(*point).input(), room);
}

Cell foretold_cell(const Largest& row) {
  const int64_t batch = foretold(*row.merged);
  return batch == 0 ? cells::words("-") : cells::count(batch);
}

Cell error_cell(const Largest& row) {
  const int64_t batch = foretold(*row.merged);
  if (batch == 0) return cells::words("-");
  return cells::difference(static_cast<double>(row.merged->point.training.batch_size),
                           static_cast<double>(batch));
}

constexpr const char* kGroup = "at the largest batch";

ColumnsOf<Largest> found_columns() {
  return {{{"largest batch", "per rank"},
           [](const auto& row) { return cells::count(row.merged->point.training.batch_size); },
           "the largest that ran."},
          {{"too large", ""},
           [](const auto& row) { return cells::count(row.fails); },
           "the smallest that ran out of memory, under the limit of the run (suites' memory_limit, or the "
           "device's own)."},
          {{"predicted", "per rank"},
           foretold_cell,
           "the largest batch by the limit of the run, the formula of the strategy's paper and the model's "
           "table of activations, as plan foretells it."},
          {{"error", "%"}, error_cell, "largest batch / predicted - 1."}};
}

ColumnsOf<Largest> memory_columns() {
  return columns_of<Largest>({{"peak_bytes", kGroup, "peak"},
                              {"program_bytes", kGroup},
                              {"activation_bytes_per_sample", kGroup},
                              {"offloaded_bytes", "", "", true},
                              {"step", kGroup}});
}

// As in every table, but for the heading.
ColumnsOf<Largest> speed_columns() {
  ColumnsOf<MergedPoint> columns = point_throughput_columns();
  for (auto& column : columns) column.head.group = kGroup;
  Column& samples = columns.front().head;
  samples.name = "throughput", samples.unit = "samples/s";
  return via(&Largest::merged, std::move(columns));
}

}  // namespace

Table largest_table(const std::vector<StudyData>& studies, const MergedPoints& points) {
  const TrainingColumns labels(points);
  return make_table(
      "memory.largest", "The largest batch that fits",
      join(via(&Largest::merged, without(labels.columns(), {"batch"})), found_columns(), memory_columns(),
           speed_columns(), via(&Largest::merged, TrainingColumns::warnings())),
      rows_of(studies, points));
}

}  // namespace shardmark
