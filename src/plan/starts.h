// Points by the start of the ranks that can measure them: what a suite lists under `environment` is read once
// by the libraries, so that each combination needs ranks that were started with it.
#pragma once

#include <string>
#include <vector>

#include "schema/point.h"
#include "schema/settings.h"

namespace shardmark {

struct StartOfPoints {
  std::string environment;  // as its points have it
  int64_t repetition = 0;   // the one that it measures, from 1; 0: all that there are
  std::vector<Point> points;
};

// Where points have settings, one start for each repetition of each combination. How long a step takes
// differs more between starts than between the steps of one, so settings can only be told apart by several
// starts of each. Repetitions take turns (A B C A B C), so that a change of the machine meanwhile meets all
// settings alike. Where no point has settings: one start with all points.
std::vector<StartOfPoints> starts_of(const std::vector<Point>& points);

// The different combinations, in the order in which points name them first.
std::vector<std::string> settings_of(const std::vector<Point>& points);

// Everything that any of the points sets. A start sets what its points say, and takes away the rest of these.
std::vector<std::string> names_set(const std::vector<Point>& points);

// How a start with these settings differs from one that has `here`, name -> value: "NCCL_ALGO is not set";
// empty: it is the one.
std::string difference(const Settings& wanted, const Settings& here);

}  // namespace shardmark
