// The suite that measures one point again: what the page shows so that each of its points can be reproduced.
// The same of several training points, for launch.
#pragma once

#include <string>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// YAML, with everything at its default left out. If the point came from a suite, plan makes the same point of
// this text.
std::string suite_of(const Point& point);

struct SuitePoint {
  Point point;
  std::string comment;  // one line
};
struct SuiteHead {
  std::string name, description, comment;  // comment: lines
  int64_t repeats = 1;                     // starts of the ranks
};
// Each point as a block of its own, with its layout, micro-batches, precision and recomputation also at their
// defaults. Ranks, seed, sampling, transport and settings are those of the first. Where it has no settings,
// how ranks are bound is one, at its default: only settings make each repetition a start of its own.
std::string suite_of(const SuiteHead& head, const std::vector<SuitePoint>& blocks);

}  // namespace shardmark
