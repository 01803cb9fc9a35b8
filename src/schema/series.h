// Series that came in pieces.
#pragma once

#include <vector>

#include "schema/record.h"

namespace shardmark {

// The columns of all pieces, one piece after the other. A piece that names a series that there is not
// (fields.h), or one twice, or has other rows than the pieces before it, is left out.
std::vector<Series> join_columns(const std::vector<std::vector<Series>>& pieces);

}  // namespace shardmark
