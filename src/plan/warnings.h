// Warnings about training points that can run but are probably not what the user wants.
#pragma once

#include <string>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// Returns one line for each warning. The number of ranks need not be known yet.
std::vector<std::string> warnings_of(const Point& point);

// Whether gradients of several micro-batches are added in the type in which they are reduced. The other
// strategies add them in the type of the optimizer.
bool adds_as_reduced(const TrainingPoint& training);
// Whether that is the 16-bit type in which blocks compute.
bool adds_in_16_bits(const TrainingPoint& training);

}  // namespace shardmark
