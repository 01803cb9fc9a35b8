// Which point a row is about, for tables that hold training points and collectives together.
#pragma once

#include "analysis/columns.h"
#include "analysis/merged.h"

namespace shardmark {

ColumnsOf<MergedPoint> about_columns();

}  // namespace shardmark
