// The same global batch in one and in several micro-batches: whether training is the same.
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

// Points that differ in the number of micro-batches alone have the same key.
std::pair<std::string, int64_t> key_of(const MergedPoint& merged) {
  return {series_key(merged, {"accumulation", "batch_size"}), merged.point.global_batch()};
}

bool is_cut(const MergedPoint& merged) { return merged.point.training.accumulation != 1; }

struct CutPoint {
  const MergedPoint *merged, *whole;  // the same samples in one batch
};

// |loss - loss of one batch| / loss of one batch.
Cell loss_difference(const CutPoint& row) {
  const double loss = row.merged->measures.loss_last, base = row.whole->measures.loss_last;
  const bool comparable = steps_in_each(row.merged->records) == steps_in_each(row.whole->records);
  return cells::number(comparable ? std::abs(loss - base) / std::abs(base) : Measures::kNone, 2);
}

auto count_of(int64_t TrainingPoint::*member) {
  return [member](const CutPoint& row) { return cells::count(row.merged->point.training.*member); };
}

ColumnsOf<CutPoint> loss_columns() {
  return {{{"micro-batches", ""}, count_of(&TrainingPoint::accumulation)},
          {{"of", "samples per rank"}, count_of(&TrainingPoint::batch_size)},
          {{"steps", "", true, true},
           [](const auto& row) {
             const auto steps = steps_in_each(row.merged->records);
             return steps ? cells::count(*steps) : cells::words("");
           }},
          {{"loss", "of the last step"},
           [](const auto& row) { return cells::number(row.merged->measures.loss_last, 7); }},
          {{"difference", "relative"},
           loss_difference,
           "|loss - loss of one batch| / loss of one batch, after the same number of steps with the same "
           "samples; - where the numbers of steps differ, also those of repeats. Without batch norm, "
           "rounding only; local batch norm takes its statistics from one micro-batch, so it trains a "
           "different model; frozen batch norm does not."}};
}

ColumnsOf<CutPoint> step_columns() {
  const ColumnsOf<CutPoint> ratio = {{{"x one batch", ""},
                                      [](const auto& row) {
                                        return cells::number(
                                            row.merged->measures.step_s / row.whole->measures.step_s, 3);
                                      },
                                      "step / that of the same samples in one batch."}};
  return join(columns_of<CutPoint>({{"step"}}), ratio,
              columns_of<CutPoint>({{"peak_bytes"}, {"traffic_bytes", "traffic"}}));
}

}  // namespace

Table accumulation_table(const MergedPoints& points) {
  std::vector<CutPoint> rows;
  // Groups are sorted by is_cut, so the point in one batch comes first if there is one. Groups without it
  // have nothing to compare with.
  for (const PointList& group : groups_of(training_points(points), key_of, is_cut))
    if (!is_cut(*group.front()) && group.size() > 1)
      for (const MergedPoint* merged : group) rows.push_back({merged, group.front()});
  const TrainingColumns labels(points);
  return make_table("strategies.accumulation",
                    "Accumulation: one batch, and the same samples in micro-batches",
                    join(via(&CutPoint::merged, without(labels.columns(), {"accumulation", "batch"})),
                         loss_columns(), step_columns(), via(&CutPoint::merged, TrainingColumns::warnings())),
                    rows);
}

}  // namespace shardmark
