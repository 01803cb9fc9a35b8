// The slowest rank's time in each step, round or interval of a series, which is how long all ranks together
// took.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "schema/record.h"

namespace shardmark {

// Nothing where the record has no such series.
inline std::vector<double> slowest_of(const Record& record, std::string_view name) {
  const Series* series = record.series(name);
  if (series == nullptr) return {};
  std::vector<double> slowest(static_cast<size_t>(series->columns));
  for (int64_t rank = 0; rank < series->rows; ++rank)
    for (int64_t column = 0; column < series->columns; ++column) {
      double& most = slowest[static_cast<size_t>(column)];
      most = std::max(most, series->at(rank, column));
    }
  return slowest;
}

}  // namespace shardmark
