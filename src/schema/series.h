// Joins series that were recorded in pieces, such as the intervals of a sustained run.
#pragma once

#include <vector>

#include "schema/record.h"

namespace shardmark {

// Returns each series with the columns of all pieces, one piece after the other. A piece is left out if it
// names an unknown series (series_info.h), names one twice, or has another number of rows than the pieces
// before it.
std::vector<Series> join_columns(const std::vector<std::vector<Series>>& pieces);

}  // namespace shardmark
