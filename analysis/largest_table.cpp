// The largest batch that fits, per strategy: from points that fit and points that ran out of memory.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

constexpr size_t kBatchColumn =
    TrainingColumns::kNumFamilyColumns;  // of TrainingColumns: here it is the result

// Of points that differ in batch size alone.
struct Search {
  const MergedPoint* largest = nullptr;
  int64_t fails = 0;  // the smallest batch that ran out of memory
};

std::string key_of(const std::string& family, const std::string& strategy, int64_t ranks) {
  return family + "\n" + strategy + "\n" + std::to_string(ranks);
}

// The smallest batch of each series that ran out of memory.
std::map<std::string, int64_t> failures(const std::vector<StudyData>& studies) {
  std::map<std::string, int64_t> fails;
  for (const StudyData& study : studies)
    for (const Record& record : study.records) {
      if (record.outcome != Outcome::out_of_memory || record.point.workload != "training") continue;
      const MergedPoint alike = as_merged(record, study.environment);
      const auto [found, is_new] = fails.try_emplace(key_of(alike.family, alike.strategy, record.point.ranks),
                                                     record.point.training.batch_size);
      found->second = std::min(found->second, record.point.training.batch_size);
    }
  return fails;
}

std::vector<Cell> found(const MergedPoint& merged, int64_t fails) {
  const Measures& m = merged.measures;
  const auto batch = static_cast<double>(merged.point.training.batch_size);
  const double state = m.parameter_bytes + m.gradient_bytes + m.optimizer_bytes + m.transient_bytes;
  return {cells::count(merged.point.training.batch_size),
          cells::count(fails),
          cells::mebibytes(m.peak_bytes),
          cells::mebibytes(state),
          cells::mebibytes((m.peak_bytes - state) / batch),
          cells::mebibytes(m.offloaded_bytes),
          cells::number(m.samples_per_s),
          cells::milliseconds(m.step_s)};
}

std::vector<Column> columns() {
  std::vector<Column> labels = TrainingColumns::columns();
  labels.erase(labels.begin() + kBatchColumn);
  return concat<Column>({std::move(labels),
                         {{"largest batch", "per rank"},
                          {"too large", ""},
                          {"peak", "MiB", true, false, "at the largest batch"},
                          {"state and slots", "MiB", true, false, "at the largest batch"},
                          {"rest per sample", "MiB", true, false, "at the largest batch"},
                          {"in host memory", "MiB", true, true},
                          {"throughput", "samples/s", true, false, "at the largest batch"},
                          {"step", "ms", true, false, "at the largest batch"}},
                         TrainingColumns::mark_columns()});
}

}  // namespace

Table largest_table(const std::vector<StudyData>& studies, const MergedPoints& points) {
  Table table{"largest",
              "The largest batch that fits",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns - 1,
              TrainingColumns::kNumSectionColumns};
  const auto fails = failures(studies);
  std::map<std::string, const MergedPoint*> largest;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    const MergedPoint*& best = largest[key_of(merged.family, merged.strategy, merged.point.ranks)];
    if (best == nullptr || merged.point.training.batch_size > best->point.training.batch_size) best = &merged;
  }
  const TrainingColumns labels(points);
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    const std::string key = key_of(merged.family, merged.strategy, merged.point.ranks);
    const auto failed = fails.find(key);
    if (failed == fails.end() || largest[key] != &merged) continue;
    std::vector<Cell> row = labels.cells(merged);
    row.erase(row.begin() + kBatchColumn);
    table.rows.push_back(
        concat<Cell>({std::move(row), found(merged, failed->second), TrainingColumns::mark_cells(merged)}));
  }
  table.notes = {
      "largest batch: the largest that ran; too large: the smallest that ran out of memory. Memory is that "
      "of the "
      "rank that has most, under the limit of the run (suites' memory_limit, or the device's own).",
      "state and slots: parameters, gradients, optimizer state and the strategy's slots. rest per sample: "
      "peak "
      "without them / batch: activations, the batch and working memory."};
  return table;
}

}  // namespace shardmark
