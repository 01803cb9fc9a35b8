// Groups points by the start of the ranks that can measure them. Libraries read what a suite lists under
// `environment` only once, so each combination needs ranks that were started with it.
#pragma once

#include <string>
#include <vector>

#include "schema/point.h"
#include "schema/settings.h"

namespace shardmark {

struct StartOfPoints {
  std::string environment;  // the same for all of its points
  int64_t repetition = 0;   // the repetition that it measures, from 1; 0: all
  std::vector<Point> points;
};

// If points have settings, there is one start for each repetition of each combination. Step times differ more
// between starts than between the steps of one start, so settings can only be compared over several starts of
// each. Repetitions take turns (A B C A B C), so that a change of the machine affects all settings alike. If
// no point has settings, one start measures all points.
std::vector<StartOfPoints> starts_of(const std::vector<Point>& points);

// The distinct combinations, in the order in which points first name them.
std::vector<std::string> settings_of(const std::vector<Point>& points);

// The names that any of the points sets. A start sets what its own points say, and unsets all other names.
std::vector<std::string> names_set(const std::vector<Point>& points);

// Returns the first difference between the wanted settings and those that are set `here`: "NCCL_ALGO is not
// set"; empty if they are equal.
std::string difference(const Settings& wanted, const Settings& here);

}  // namespace shardmark
