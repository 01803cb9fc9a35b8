// See training_columns.h.
#include "analysis/training_columns.h"

#include "analysis/cells.h"
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

std::vector<Column> TrainingColumns::family_columns() {
  return {{"machine", "", false, true},  {"transport", "", false, true},    {"model", "", false, true},
          {"data", "", false, true},     {"optimizer", "", false, true},    {"accumulation", "", true, true},
          {"seed", "", true, true},      {"precision", "", false, true},    {"reduced as", "", false, true},
          {"clip norm", "", true, true}, {"checkpointing", "", false, true}};
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

std::vector<Column> TrainingColumns::columns() {
  return concat<Column>(
      {family_columns(),
       {{"batch", "per rank", true, true}, {"ranks", "", true, true}, {"strategy", "", false}}});
}

std::vector<Cell> TrainingColumns::cells(const MergedPoint& merged) const {
  const Point& p = merged.point;
  return concat<Cell>(
      {family_cells(merged), {cells::count(p.training.batch_size), cells::count(p.ranks), strategy(merged)}});
}

std::vector<Column> TrainingColumns::mark_columns() {
  return {{"repeats", "", true, true}, {"marks", "", false, true}};
}

std::vector<Cell> TrainingColumns::mark_cells(const MergedPoint& merged) {
  return {cells::count(merged.repeats), doubt_cell(merged)};
}

std::vector<std::string> TrainingColumns::mark_notes() const {
  std::vector<std::string> notes;
  if (marks_.contains("oversubscribed"))
    notes.push_back(
        "oversubscribed: more ranks than cores, or several ranks on one GPU. Such a time says little, and no "
        "fit uses it.");
  if (marks_.contains("unaccounted"))
    notes.push_back("unaccounted: the durations of a rank did not add up to its wall time within 1 %.");
  if (marks_.size() > marks_.count("oversubscribed") + marks_.count("unaccounted"))
    notes.push_back("Other marks: see the table of findings.");
  return notes;
}

std::vector<std::string> TrainingColumns::notes() const {
  std::vector<std::string> notes = mark_notes();
  std::string legend;
  for (const Labels* labels : {&models_, &data_, &optimizers_, &strategies_})
    if (const std::string text = labels->legend(); !text.empty())
      legend += (legend.empty() ? "" : "; ") + text;
  if (!legend.empty())
    notes.push_back("Options that the names leave out, because all rows share them: " + legend + ".");
  if (any_repeats_)
    notes.push_back(
        "A point measured several times (repeats, or several studies) is one row of medians over its "
        "repeats. Its interval "
        "then spans the repeats' intervals (2 to 5 repeats) or is that of the repeats' medians (from 6).");
  return notes;
}

}  // namespace shardmark
