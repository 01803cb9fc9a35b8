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
  std::vector<Point> points;
};

// In the order in which the points name them first. One start, with no settings, where no point has any.
std::vector<StartOfPoints> starts_of(const std::vector<Point>& points);

// Everything that any of the points sets. A start sets what its points say, and takes away the rest of these.
std::vector<std::string> names_set(const std::vector<Point>& points);

// How a start with these settings differs from one that has `here`, name -> value: "NCCL_ALGO is not set";
// empty: it is the one.
std::string difference(const Settings& wanted, const Settings& here);

}  // namespace shardmark
