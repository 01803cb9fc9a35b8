// Why the numbers of one record should not be believed, found in its own samples. Thresholds:
// analysis/README.md.
#pragma once

#include <string>
#include <vector>

#include "schema/record.h"

namespace shardmark {

struct Warning {
  std::string kind;   // in tables: "warming up", "oversubscribed" ...
  std::string words;  // the finding, a line
  bool excludes;      // no fit uses such a point
};

inline constexpr const char* kLostCores = "lost cores";  // said first, whatever else is found

// The warnings of a record with outcome ok. Without its samples, only what its measures tell is found.
std::vector<Warning> warnings_of(const Record& record);

}  // namespace shardmark
