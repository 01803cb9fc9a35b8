#include "analysis/frame/training_columns.h"

#include "analysis/frame/quantities.h"
#include "analysis/table/axis_columns.h"

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
  column.starts = axis.is_section ? Starts::section : Starts::group;
  return column;
}

std::vector<Cell> make_family_cells(const MergedPoint& merged) {
  std::vector<Cell> cells = {cells::words(merged.machine), transport_cell(merged.transport)};
  const auto add = [&](const AxisRow& axis) { cells.push_back(axis_cell(axis, merged.point)); };
  for_each_setting(true, add);
  cells.push_back(cells::count(merged.point.seed));
  for_each_setting(false, add);
  return cells;
}

}  // namespace

ColumnOf<MergedPoint> nodes_column(Starts starts) {
  return {{"nodes", "", true, true, "", starts}, [](const auto& merged) {
            Cell cell = merged.nodes > 0 ? cells::count(merged.nodes) : cells::words("");
            if (merged.nodes > 1 && merged.ranks_per_node == 0) cell.text += ", uneven";
            if (!merged.names_nodes) cell.text.clear();
            return cell;
          }};
}

ColumnOf<MergedPoint> machine_column(Starts starts) {
  return {{"machine", "", false, true, "", starts}, [](const auto& merged) {
            return Cell{merged.names_machine ? merged.machine : "", merged.machine};
          }};
}

Cell warning_cell(const MergedPoint& merged) {
  std::string kinds;
  for (const Warning& warning : merged.warnings) kinds += (kinds.empty() ? "" : ", ") + warning.kind;
  return kinds.empty() ? Cell{"", nullptr} : cells::words(kinds);
}

ColumnsOf<Throughput> throughput_columns() {
  const auto optional = [](const char* name) { return Column{.name = name, .is_optional = true}; };
  return {{optional("samples/s"),
           [](const auto& speed) {
             return cells::unless_said(speed.is_of_tokens(), cells::number(speed.samples_per_s));
           },
           quantity("samples_per_s").definition},
          {optional("tokens/s"), [](const auto& speed) { return cells::number(speed.tokens_per_s); },
           quantity("tokens_per_s").definition},
          {optional("tokens/s/rank"),
           [](const auto& speed) {
             return cells::unless_said(speed.ranks == 1, cells::number(speed.tokens_per_s_and_rank()));
           },
           "tokens/s / ranks."},
          {{.name = "MFU", .unit = "%", .is_optional = true},
           [](const auto& speed) { return cells::percent(speed.mfu); },
           quantity("mfu").definition},
          {{.name = "of matmul", .unit = "%", .is_optional = true},
           [](const auto& speed) { return cells::percent(speed.of_matmul); },
           quantity("of_matmul").definition}};
}

ColumnsOf<MergedPoint> point_throughput_columns() {
  return through<MergedPoint>([](const MergedPoint& merged) { return throughput_of(merged); },
                              throughput_columns());
}

TrainingColumns::TrainingColumns(const std::vector<MergedPoint>& points) {
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    if (const auto [at, is_new] = family_cells_.try_emplace(merged.family); is_new)
      at->second = make_family_cells(merged);
    if (const auto [at, is_new] = strategy_cells_.try_emplace(merged.strategy); is_new)
      at->second = strategy_cell(merged.point.training);
    any_repeats_ |= merged.repeats > 1;
    for (const Warning& warning : merged.warnings) warnings_.insert(warning.kind);
  }
}

std::vector<Column> TrainingColumns::family_columns() {
  std::vector<Column> columns = {{"machine", "", false, true, "", Starts::section},
                                 choice_column("transport", true, Starts::section)};
  const auto add = [&](const AxisRow& axis) { columns.push_back(column_of(axis)); };
  for_each_setting(true, add);
  columns.push_back({"seed", "", true, true, "", Starts::section});
  for_each_setting(false, add);
  return columns;
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
          nodes_column(Starts::group),
          {choice_column("strategy"), [this](const auto& merged) { return strategy(merged); }}};
}

ColumnsOf<MergedPoint> TrainingColumns::warnings() {
  return {{{"repeats", "", true, true}, [](const auto& merged) { return cells::count(merged.repeats); }},
          {{"warnings", "", false, true}, warning_cell}};
}

std::vector<std::string> TrainingColumns::warning_notes() const {
  std::vector<std::string> notes;
  if (warnings_.contains("oversubscribed"))
    notes.emplace_back(
        "oversubscribed: more ranks than cores, or several ranks on one GPU. Such a time is unreliable, and "
        "no fit uses it.");
  if (warnings_.contains("unaccounted"))
    notes.emplace_back("unaccounted: the durations of a rank did not add up to its wall time within 1 %.");
  if (warnings_.size() > warnings_.count("oversubscribed") + warnings_.count("unaccounted"))
    notes.emplace_back("Other warnings: see the table problems.");
  return notes;
}

std::vector<std::string> TrainingColumns::explanations() const {
  std::vector<std::string> explanations;
  if (any_repeats_)
    explanations.emplace_back(
        "A point measured several times (repeats, or several studies) is one row of medians over its "
        "repeats. Its interval then spans the repeats' intervals (2 to 5 repeats) or is that of the repeats' "
        "medians (from 6).");
  return explanations;
}

}  // namespace shardmark
