// Which records a run can have written. A study from elsewhere is input like any other.
#pragma once

#include "schema/record.h"

namespace shardmark {

// UsageError: ranks, a batch, a message or another number of the point lies outside what its axis accepts
// (schema/axes.h), by name.
void require_possible(const Record& record);

}  // namespace shardmark
