// What longer sequences cost: time, memory, and attention's share of the computing.
#include "analysis/frame/sequences.h"

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

struct SequenceRow {
  const SequenceSeries* series;
  const SequencePoint* point;
  const MergedPoint* merged;
};

std::vector<SequenceRow> rows_of(const std::vector<SequenceSeries>& all) {
  std::vector<SequenceRow> rows;
  for (const SequenceSeries& series : all)
    for (const SequencePoint& point : series.points) rows.push_back({&series, &point, point.merged});
  return rows;
}

ColumnsOf<SequenceRow> length_columns() {
  return {{{"micro-batch", "", false, true, "", Starts::group},
           [](const auto& row) { return cells::words(row.series->same); },
           "what all sequences of a series share, on each rank."},
          {{"sequence", "tokens"}, [](const auto& row) { return cells::count(row.point->sequence); }},
          {{"batch", "per rank", true, true},
           [](const auto& row) { return cells::count(row.merged->point.training.batch_size); }}};
}

ColumnsOf<SequenceRow> cost_columns() {
  const ColumnsOf<SequenceRow> attention = {
      {{"attention", "% of FLOPs"},
       [](const auto& row) { return cells::percent(row.point->attention); },
       "the model's FLOPs for scores and for values by them, counted in full (not halved for the causal "
       "mask) / all of them, by the model's table."}};
  return join(columns_of<SequenceRow>({{"step"}}), attention, columns_of<SequenceRow>({{"peak_bytes"}}));
}

}  // namespace

Table sequences_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  const std::vector<SequenceSeries> all = sequence_series(points);
  const ColumnsOf<SequenceRow> model = {{choice_column("model", true, Starts::section), [](const auto& row) {
                                           return choice_cell("model", row.series->model);
                                         }}};
  const ColumnsOf<SequenceRow> where = {
      {{"ranks", "", true, true, "", Starts::group},
       [](const auto& row) { return cells::count(row.merged->point.ranks); }},
      {choice_column("strategy", true, Starts::group),
       [&](const auto& row) { return labels.strategy(*row.merged); }}};
  return make_table("layouts.sequences", "Length of the sequence: what it costs",
                    join(model, via(&SequenceRow::merged, without(labels.family(), {"model"})), where,
                         length_columns(), via(&SequenceRow::merged, point_throughput_columns()),
                         cost_columns(), via(&SequenceRow::merged, TrainingColumns::warnings())),
                    rows_of(all));
}

}  // namespace shardmark
