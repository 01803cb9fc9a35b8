// Layouts of one training: points of the same model on as many ranks that take the same samples in a step,
// and differ in how they are laid out over the ranks.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/groups.h"

namespace shardmark {

// Two and more, the fastest first; in at least one of them several ranks share a copy of the model, or its
// experts.
using Layouts = PointList;
std::vector<Layouts> layouts_of(const std::vector<MergedPoint>& points);

// "tensor 2, pipeline 2 (zero_bubble)"; "data" where every rank has a copy of the model.
std::string layout_text(const Point& point);

// Where the time of a step goes, as shares of its length: waiting for copies of the model alone, that is
// exposed communication without what the others have.
double exposed_data_s(const Measures& measures);

}  // namespace shardmark
