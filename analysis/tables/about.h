// Which point a row is about, for tables that hold training points and collectives together.
#pragma once

#include "analysis/frame/merged.h"
#include "analysis/table/columns.h"

namespace shardmark {

ColumnsOf<MergedPoint> about_columns();

}  // namespace shardmark
