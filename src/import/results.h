// Results of other programs become a study.
#pragma once

#include <string>
#include <vector>

#include "import/source.h"
#include "schema/environment.h"

namespace shardmark::imports {

struct Imported {
  Environment environment;  // without command line and revision, which are the caller's
  std::vector<Record> records;
  std::vector<std::string> warnings;
  int64_t num_launches = 0;
};

// Each file is a launch, or as many as it says; what a launch measured again is a further repeat. UsageError:
// a file that is no source or holds nothing, the same results twice, or facts that are missing or contradict
// each other.
Imported imported_results(const std::vector<Source>& sources, const Given& given);

}  // namespace shardmark::imports
