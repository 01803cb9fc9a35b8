// Parses the numbers of ranks that `predict` takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace shardmark {

inline int64_t rank_count(std::string_view text) {
  try {
    return values::kRanks.parse(std::string(text));
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) + "; write 8, 8,16,24 or 8..65536 (8, 16, 32 ... 65536)");
  }
}

// "8..65536" doubles from 8 to at most 65536; "8,16,24" gives exactly these.
inline std::vector<int64_t> rank_counts(const std::string& text) {
  std::vector<int64_t> counts;
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    const std::string_view all = text;
    const int64_t last = rank_count(all.substr(dots + 2));
    for (int64_t n = rank_count(all.substr(0, dots)); n <= last; n *= 2) counts.push_back(n);
    if (counts.empty()) throw UsageError("'" + text + "' ends before it begins");
    return counts;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    counts.push_back(rank_count(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return counts;
}

}  // namespace shardmark
