// Series of scaling by what they are about: those that one plot, or one sentence, compares.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/names.h"
#include "analysis/stats/scaling.h"

namespace shardmark {

std::string series_about(const ScalingSeries& series,
                         const PlotNames& names);  // "gpt2, batch 4 per rank"

// Series that differ in strategy alone: one of each.
using SeriesGroup = std::vector<const ScalingSeries*>;

// In the order of the series; they point into `all`. Points of a weak sweep make short strong series by
// chance (batch 4 on 4 ranks meets batch 16 on one): those are left out where there are longer ones.
std::vector<SeriesGroup> series_groups(const std::vector<ScalingSeries>& all);

}  // namespace shardmark
