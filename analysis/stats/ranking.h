// Which of several points is the fastest, as far as their launches tell.
#pragma once

#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

// points: the shortest step first. Returns how many of them, from the first one on, may be the fastest: those
// that their launches do not tell apart from the first, and all before the last of these. A point that has
// fewer than kLeastLaunches launches is never told apart, because steps of one launch do not show how much
// launches vary. 0 of no points; 1: the first is the fastest.
size_t num_perhaps_fastest(const std::vector<const MergedPoint*>& points);
// Whether their launches show that a second of `less` and `factor` seconds of `more` differ: that the
// latter's steps, each times the factor, take longer.
bool is_surely_more(const MergedPoint& more, double factor, const MergedPoint& less);

}  // namespace shardmark
