// Turns results of other programs into a study.
#pragma once

#include <string>
#include <vector>

#include "import/source.h"
#include "schema/environment.h"

namespace shardmark::imports {

struct Imported {
  // Without command line and revision; the caller sets those.
  Environment environment;
  std::vector<Record> records;
  std::vector<std::string> warnings;
  int64_t num_launches = 0;
};

// Each file is one launch, or as many as it says. What a launch has measured more than once counts as further
// repeats. Throws UsageError if a file has no known format or no results, if the same results are given
// twice, or if facts are missing or contradict each other.
Imported imported_results(const std::vector<Source>& sources, const Given& given);

}  // namespace shardmark::imports
