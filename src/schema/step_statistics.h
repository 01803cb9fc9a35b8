// Statistics that both workloads have: the step time with its interval, its spread, its drift, and the
// slowest rank.
#pragma once

#include <vector>

#include "schema/record.h"

namespace shardmark {

// Returns the maximum over ranks for each step: [steps], from a series [rank, step].
std::vector<double> worst_of_ranks(const Series& series);

// Returns the number of timed steps. In a sustained run, the series "step" holds only some of them.
int64_t num_timed_steps(const Record& record);

// Fills in the measures that both workloads have (step_s .. slowest_share, num_steps) from the record's
// series. A record whose series "step" is missing or empty stays as it is.
void summarize(Record& record);

}  // namespace shardmark
