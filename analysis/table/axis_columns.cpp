// See axis_columns.h.
#include "analysis/table/axis_columns.h"

#include "analysis/table/cells.h"

namespace shardmark {
namespace {

Cell cell_of(bool value) { return cells::yes_no(value); }
Cell cell_of(int64_t value) { return cells::count(value); }
Cell cell_of(double value) { return cells::number(value); }
Cell cell_of(const std::string& value) { return cells::words(value); }
Cell cell_of(const Choice& value) { return cells::words(to_text(value)); }

}  // namespace

Column axis_column(const AxisRow& axis) {
  const bool is_text = std::holds_alternative<Words>(axis.accepted) ||
                       std::holds_alternative<Choices>(axis.accepted) ||
                       std::holds_alternative<TrueOrFalse>(axis.accepted);
  return {axis.heading, "", !is_text, true};
}

Cell axis_cell(const AxisRow& axis, const Point& point) {
  return cells::unless_default(axis.hides_default && is_default(axis, point),
                               visit_member(axis, point, [](const auto& value) { return cell_of(value); }));
}

}  // namespace shardmark
