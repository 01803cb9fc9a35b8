// Points as people name them: options at their defaults are left out.
#pragma once

#include <string>

#include "schema/point.h"

namespace shardmark::strategies {

// "training gpt2(layers=4) fsdp 2 ranks batch 4"; like to_text(point) otherwise.
std::string short_text(const Point& point);

}  // namespace shardmark::strategies
