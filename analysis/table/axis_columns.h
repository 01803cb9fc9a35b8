// Columns of tables made from the axes of a suite (schema/axes.h).
#pragma once

#include "analysis/table/columns.h"
#include "schema/axes.h"

namespace shardmark {

Column axis_column(const AxisRow& axis);
// Empty at the default where the row says so.
Cell axis_cell(const AxisRow& axis, const Point& point);

// The columns of these axes of training, or of all that have headings. Rows about a point take them by
// via(&Row::point, ...).
ColumnsOf<Point> axis_columns(const std::set<std::string>& keys = {});

// A choice, for people without the options at their defaults (strategies/brief_text.h), for programs whole.
Column choice_column(const std::string& name, bool fold = false, Starts starts = Starts::nothing);
Cell choice_cell(const std::string& axis, const Choice& choice);
Cell transport_cell(const std::string& transport);
Cell strategy_cell(const TrainingPoint& point);  // with what auto became

}  // namespace shardmark
