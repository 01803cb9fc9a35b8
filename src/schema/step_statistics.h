// Statistics of any workload's samples: the step time with its interval, its spread, its drift, and the
// slowest rank.
#pragma once

#include <vector>

#include "schema/record.h"

namespace shardmark {

// The slowest rank's time of each step: [steps], from a series [rank, step].
std::vector<double> worst_of_ranks(const Series& series);

// Timed, kept or not: of a sustained run the series "step" holds a part of them.
int64_t num_timed_steps(const Record& record);

// Older versions stored the range of the steps as step_low and step_high where there were fewer than
// kLeastForInterval steps. That range is no 95 % interval, so whoever reads a study removes it.
void remove_range_of_few_steps(Record& record);

// Fills the measures of both workloads (step_s .. slowest_share, num_steps) from the record's series "step".
// A record without that series, or with an empty one, stays as it is.
void summarize(Record& record);

}  // namespace shardmark
