// Rejects records that no run can have written. A study from elsewhere is input like any other, and code
// behind this check may rely on the ranges.
#pragma once

#include "schema/record.h"

namespace shardmark {

// Throws a UsageError that names the axis if ranks, a batch, a message or another number of the point is
// outside the range that its axis accepts (schema/axes.h).
void require_possible(const Record& record);

}  // namespace shardmark
