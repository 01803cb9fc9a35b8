// Which point a row is about, for tables that hold training points and collectives together.
#pragma once

#include <vector>

#include "analysis/merged.h"
#include "analysis/table.h"

namespace shardmark {

std::vector<Column> about_columns();
std::vector<Cell> about_cells(const MergedPoint& merged);

}  // namespace shardmark
