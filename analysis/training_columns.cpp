// See training_columns.h.
#include "analysis/training_columns.h"

#include "analysis/known.h"

namespace shardmark {
namespace {

std::string checkpointing(int64_t every) {
  return every == 1 ? "full" : "every " + std::to_string(every) + ". block";
}

}  // namespace

Cell doubt_cell(const MergedPoint& merged) {
  std::string marks;
  for (const Doubt& doubt : merged.doubts) marks += (marks.empty() ? "" : ", ") + doubt.kind;
  return marks.empty() ? Cell{"", nullptr} : cells::words(marks);
}

std::vector<const MergedPoint*> training_points(const std::vector<MergedPoint>& points,
                                                bool (*holds)(const MergedPoint&)) {
  std::vector<const MergedPoint*> training;
  for (const MergedPoint& merged : points)
    if (is_training(merged) && holds(merged)) training.push_back(&merged);
  return training;
}

TrainingColumns::TrainingColumns(const std::vector<MergedPoint>& points) {
  std::vector<const MergedPoint*> families, strategies;  // the first point of each
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    const TrainingPoint& t = merged.point.training;
    if (family_cells_.try_emplace(merged.family).second) {
      families.push_back(&merged);
      models_.add(t.model);
      data_.add(t.data);
      optimizers_.add(t.optimizer);
    }
    if (strategy_cells_.try_emplace(merged.strategy).second) {
      strategies.push_back(&merged);
      strategies_.add(t.strategy, known_options(t.strategy));
    }
    any_repeats_ |= merged.repeats > 1;
    for (const Doubt& doubt : merged.doubts) marks_.insert(doubt.kind);
  }
  for (const MergedPoint* merged : families) family_cells_[merged->family] = make_family_cells(*merged);
  for (const MergedPoint* merged : strategies)
    strategy_cells_[merged->strategy] = cells::words(strategy_text(merged->point.training));
}

std::string TrainingColumns::strategy_text(const TrainingPoint& t) const {
  if (t.chosen.empty()) return strategies_.label(t.strategy);
  const Choice chosen = choice_from_text(t.chosen);
  return t.strategy.name + ": " + to_text(without_defaults(chosen, known_options(chosen)));
}

// Rows that differ in the last four alone stand together in a section.
std::vector<Column> TrainingColumns::family_columns() {
  return {{"machine", "", false, true, "", Starts::section},
          {"transport", "", false, true, "", Starts::section},
          {"model", "", false, true, "", Starts::section},
          {"data", "", false, true, "", Starts::section},
          {"optimizer", "", false, true, "", Starts::section},
          {"accumulation", "", true, true, "", Starts::section},
          {"seed", "", true, true, "", Starts::section},
          {"precision", "", false, true, "", Starts::group},
          {"reduced as", "", false, true, "", Starts::group},
          {"clip norm", "", true, true, "", Starts::group},
          {"checkpointing", "", false, true, "", Starts::group}};
}

std::vector<Cell> TrainingColumns::make_family_cells(const MergedPoint& merged) const {
  const TrainingPoint& t = merged.point.training;
  return {cells::words(merged.machine),
          cells::words(merged.transport),
          cells::words(models_.label(t.model)),
          cells::words(data_.label(t.data)),
          cells::words(optimizers_.label(t.optimizer)),
          cells::count(t.accumulation),
          cells::count(merged.point.seed),
          cells::words(t.precision),
          cells::unless_default(t.reduce_dtype == "same", cells::words(t.reduce_dtype)),
          cells::unless_default(t.clip_norm == 0, cells::number(t.clip_norm)),
          cells::unless_default(t.checkpointing == 0, cells::words(checkpointing(t.checkpointing)))};
}

ColumnsOf<MergedPoint> TrainingColumns::family() const {
  ColumnsOf<MergedPoint> family;
  for (Column& column : family_columns())
    family.push_back({std::move(column), [this, c = family.size()](const MergedPoint& merged) {
                        return family_cells(merged)[c];
                      }});
  return family;
}

ColumnsOf<MergedPoint> TrainingColumns::batch_ranks_strategy() const {
  return {{{"batch", "per rank", true, true, "", Starts::group},
           [](const auto& merged) { return cells::count(merged.point.training.batch_size); }},
          {{"ranks", "", true, true, "", Starts::group},
           [](const auto& merged) { return cells::count(merged.point.ranks); }},
          {{"strategy", "", false}, [this](const auto& merged) { return strategy(merged); }}};
}

ColumnsOf<MergedPoint> TrainingColumns::marks() {
  return {{{"repeats", "", true, true}, [](const auto& merged) { return cells::count(merged.repeats); }},
          {{"marks", "", false, true}, doubt_cell}};
}

std::vector<std::string> TrainingColumns::mark_notes() const {
  std::vector<std::string> notes;
  if (marks_.contains("oversubscribed"))
    notes.emplace_back(
        "oversubscribed: more ranks than cores, or several ranks on one GPU. Such a time says little, and no "
        "fit uses it.");
  if (marks_.contains("unaccounted"))
    notes.emplace_back("unaccounted: the durations of a rank did not add up to its wall time within 1 %.");
  if (marks_.size() > marks_.count("oversubscribed") + marks_.count("unaccounted"))
    notes.emplace_back("Other marks: see the table of findings.");
  return notes;
}

std::vector<std::string> TrainingColumns::notes() const {
  std::vector<std::string> notes = mark_notes();
  std::string legend;
  for (const Labels* labels : {&models_, &data_, &optimizers_, &strategies_})
    if (const std::string text = labels->legend(); !text.empty())
      legend += (legend.empty() ? "" : "; ") + text;
  if (!legend.empty())
    notes.emplace_back("Options that the names leave out, because all rows share them: " + legend + ".");
  if (any_repeats_)
    notes.emplace_back(
        "A point measured several times (repeats, or several studies) is one row of medians over its "
        "repeats. Its interval then spans the repeats' intervals (2 to 5 repeats) or is that of the repeats' "
        "medians (from 6).");
  return notes;
}

}  // namespace shardmark
