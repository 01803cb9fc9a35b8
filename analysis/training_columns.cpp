// See training_columns.h.
#include "analysis/training_columns.h"

#include "analysis/axis_columns.h"
#include "analysis/cells.h"
#include "analysis/known.h"

namespace shardmark {
namespace {

// Calls visit(axis) for the axes that are columns: those of sections, or the others.
template <class Visit>
void for_each_setting(bool of_sections, Visit visit) {
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.heading != nullptr && axis.is_section == of_sections) visit(axis);
}

Column column_of(const AxisRow& axis) {
  Column column = axis_column(axis);
  if (axis.in_words != nullptr) column.numeric = false;
  return column;
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
      for (const AxisRow& axis : kTrainingAxes) {
        if (axis.heading == nullptr) continue;
        const AxisValue value = value_of(axis, merged.point);
        if (const auto* choice = std::get_if<Choice>(&value)) labels_[axis.key].add(*choice);
      }
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
  std::vector<Column> columns = {{"machine", "", false, true}, {"transport", "", false, true}};
  const auto add = [&](const AxisRow& axis) { columns.push_back(column_of(axis)); };
  for_each_setting(true, add);
  columns.push_back({"seed", "", true, true});
  for_each_setting(false, add);
  return columns;
}

Cell TrainingColumns::setting_cell(const AxisRow& axis, const Point& point) const {
  const AxisValue value = value_of(axis, point);
  if (const auto* choice = std::get_if<Choice>(&value))
    return cells::words(labels_.at(axis.key).label(*choice));
  if (axis.in_words != nullptr && !is_default(axis, point))
    return cells::words(axis.in_words(std::get<int64_t>(value)));
  return axis_cell(axis, point);
}

std::vector<Cell> TrainingColumns::make_family_cells(const MergedPoint& merged) const {
  std::vector<Cell> cells = {cells::words(merged.machine), cells::words(merged.transport)};
  const auto add = [&](const AxisRow& axis) { cells.push_back(setting_cell(axis, merged.point)); };
  for_each_setting(true, add);
  cells.push_back(cells::count(merged.point.seed));
  for_each_setting(false, add);
  return cells;
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
  const auto add = [&](const Labels& labels) {
    if (const std::string text = labels.legend(); !text.empty())
      legend += (legend.empty() ? "" : "; ") + text;
  };
  for (const AxisRow& axis : kTrainingAxes)
    if (const auto labels = labels_.find(axis.key); labels != labels_.end()) add(labels->second);
  add(strategies_);
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
