// The same global batch in one and in several micro-batches: whether training is the same.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

constexpr size_t kAccumulationColumn = 5, kBatchColumn = TrainingColumns::kNumFamilyColumns;

int64_t num_steps(const MergedPoint& merged) {
  return merged.measures.num_steps + merged.measures.num_warmup;
}

// Points that differ in the number of micro-batches alone have the same key.
std::string key_of(const MergedPoint& merged) {
  Point alike = merged.point;
  alike.repeat = 0;
  alike.sampling = {};
  alike.training.scaling.clear();
  alike.training.accumulation = 1;
  // Wraps where a damaged record holds numbers that no run had.
  alike.training.batch_size = static_cast<int64_t>(static_cast<uint64_t>(alike.training.batch_size) *
                                                   static_cast<uint64_t>(merged.point.training.accumulation));
  return merged.machine + merged.transport + point_id(alike);
}

bool is_cut(const MergedPoint& merged) {
  return is_training(merged) && merged.point.training.accumulation != 1;
}

std::vector<Cell> losses(const MergedPoint& merged, const MergedPoint& whole) {
  const Measures &m = merged.measures, &base = whole.measures;
  const bool comparable = num_steps(merged) == num_steps(whole);
  const double difference =
      comparable ? std::abs(m.loss_last - base.loss_last) / std::abs(base.loss_last) : Measures::kNone;
  return {cells::count(num_steps(merged)),
          cells::number(m.loss_last, 7),
          cells::number(difference, 2),
          cells::milliseconds(m.step_s),
          cells::number(m.step_s / base.step_s, 3),
          cells::mebibytes(m.peak_bytes),
          cells::number(m.traffic_bytes / 1e6)};
}

std::vector<Column> columns() {
  std::vector<Column> labels = TrainingColumns::columns();
  labels.erase(labels.begin() + kBatchColumn);
  labels.erase(labels.begin() + kAccumulationColumn);
  return concat<Column>({std::move(labels),
                         {{"micro-batches", ""},
                          {"of", "samples per rank"},
                          {"steps", "", true, true},
                          {"loss", "of the last step"},
                          {"off by", "relative"},
                          {"step", "ms"},
                          {"x one batch", ""},
                          {"peak", "MiB"},
                          {"moved", "MB"}},
                         TrainingColumns::mark_columns()});
}

}  // namespace

Table accumulation_table(const MergedPoints& points) {
  Table table{"accumulation",
              "Accumulation: one batch, and the same samples in micro-batches",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns - 2,
              TrainingColumns::kNumSectionColumns - 1};
  if (std::none_of(points.begin(), points.end(), is_cut)) return table;
  const TrainingColumns labels(points);
  std::map<std::string, std::vector<const MergedPoint*>> groups;
  for (const MergedPoint& merged : points)
    if (is_training(merged)) groups[key_of(merged)].push_back(&merged);
  for (const MergedPoint& first : points) {
    if (!is_training(first) || is_cut(first)) continue;
    const auto& group = groups[key_of(first)];
    if (group.size() < 2) continue;
    for (const MergedPoint* merged : group) {
      std::vector<Cell> row = labels.cells(*merged);
      row.erase(row.begin() + kBatchColumn);
      row.erase(row.begin() + kAccumulationColumn);
      table.rows.push_back(concat<Cell>({std::move(row),
                                         {cells::count(merged->point.training.accumulation),
                                          cells::count(merged->point.training.batch_size)},
                                         losses(*merged, first),
                                         TrainingColumns::mark_cells(*merged)}));
    }
  }
  table.notes = {
      "off by: |loss - loss of one batch| / loss of one batch, after the same number of steps with the same "
      "samples; "
      "- where the numbers of steps differ. Rounding alone without batch norm; local batch norm takes its "
      "statistics "
      "from one micro-batch, so it trains another model; frozen batch norm does not."};
  return table;
}

}  // namespace shardmark
