// Which counts and launches a law of scaling needs, and which further ones would do.
#pragma once

#include "analysis/stats/fit.h"

namespace shardmark {

// Why the counts do not determine the law, nor the error of its parameters; empty where they do.
std::string too_few_counts(const ScalingForm& form, const std::vector<TimedCount>& times);

// Counts of which any one, measured in as many launches as the others, would determine the law: the next
// larger and the largest smaller one. With `tested`: and leave a degree of freedom to contradict it.
std::vector<double> further_counts(const ScalingForm& form, const std::vector<TimedCount>& times,
                                   bool tested);

}  // namespace shardmark
