// MFU against one peak for each machine and precision.
#pragma once

#include "analysis/merged.h"

namespace shardmark {

// Each start of the ranks measures the peak anew, with whatever else runs on the machine. The best one of all
// records counts for every point, and points whose own was less than 90 % of it are marked: their machine
// was not free. So are points with an MFU above 100 %: it was not free at any start.
void use_best_peaks(std::vector<MergedPoint>& points);

}  // namespace shardmark
