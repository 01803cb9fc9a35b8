// The suite that measures one point again: what the page shows so that each of its points can be reproduced.
#pragma once

#include <string>

#include "schema/point.h"

namespace shardmark {

// YAML, with everything at its default left out. Of a point of a suite: plan makes the same point of it.
std::string suite_of(const Point& point);

}  // namespace shardmark
