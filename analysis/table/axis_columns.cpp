#include "analysis/table/axis_columns.h"

#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

Cell brief_cell(const std::string& brief, const std::string& whole) {
  Cell cell = cells::words(brief);
  if (!whole.empty()) cell.value = whole;
  return cell;
}

Cell cell_of(const AxisRow&, bool value) { return cells::yes_no(value); }
Cell cell_of(const AxisRow&, int64_t value) { return cells::count(value); }
Cell cell_of(const AxisRow&, double value) { return cells::number(value); }
Cell cell_of(const AxisRow& axis, const std::string& value) {
  return std::holds_alternative<Choices>(axis.accepted) ? brief_cell(brief_text(axis.key, value), value)
                                                        : cells::words(value);
}
Cell cell_of(const AxisRow& axis, const Choice& value) { return choice_cell(axis.key, value); }

}  // namespace

Column axis_column(const AxisRow& axis) {
  if (std::holds_alternative<Choices>(axis.accepted)) return choice_column(axis.heading, true);
  const bool is_text = std::holds_alternative<Words>(axis.accepted) ||
                       std::holds_alternative<TrueOrFalse>(axis.accepted) || axis.in_words != nullptr;
  return {axis.heading, "", !is_text, true};
}

Cell axis_cell(const AxisRow& axis, const Point& point) {
  const bool at_default = is_default(axis, point);
  if (axis.in_words != nullptr && !at_default)
    return cells::words(axis.in_words(std::get<int64_t>(value_of(axis, point))));
  return cells::unless_default(
      axis.hides_default && at_default,
      visit_member(axis, point, [&](const auto& value) { return cell_of(axis, value); }));
}

ColumnsOf<Point> axis_columns(const std::set<std::string>& keys) {
  ColumnsOf<Point> columns;
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.heading != nullptr && (keys.empty() || keys.contains(axis.key)))
      columns.push_back({axis_column(axis), [&axis](const Point& point) { return axis_cell(axis, point); }});
  return columns;
}

Column choice_column(const std::string& name, bool fold, Starts starts) {
  Column column{name, "", false, fold, "", starts};
  column.is_brief = true;
  return column;
}

Cell choice_cell(const std::string& axis, const Choice& choice) {
  return brief_cell(brief_text(axis, choice), to_text(choice));
}

Cell transport_cell(const std::string& transport) {
  return brief_cell(brief_text("transport", transport), transport);
}

Cell strategy_cell(const TrainingPoint& point) {
  const std::string whole = to_text(point.strategy) + (point.chosen.empty() ? "" : ": " + point.chosen);
  return brief_cell(strategy_text(point), whole);
}

}  // namespace shardmark
