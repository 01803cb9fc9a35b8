// Columns of tables made from the axes of a suite (schema/axes.h).
#pragma once

#include "analysis/table/table.h"
#include "schema/axes.h"

namespace shardmark {

Column axis_column(const AxisRow& axis);
// A choice is named by its whole text. Empty at the default where the row says so.
Cell axis_cell(const AxisRow& axis, const Point& point);

}  // namespace shardmark
