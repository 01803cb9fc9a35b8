// "Is this number good?" as tables, and in a few lines.
#pragma once

#include <string>
#include <vector>

#include "analysis/reference/matched.h"
#include "analysis/reference/rates.h"
#include "analysis/table/table.h"

namespace shardmark {

Table reference_table(const std::vector<ReferencePoint>& points);
Table rates_table(const std::vector<RatedOperation>& rates);
// A row for each study of the collection.
Table collection_table(const std::vector<StudyData>& studies);

// For the first screen, a line each: how fast the points are beside those of the collection, or that it has
// the device but none of them; what of a matrix product training reaches, and how much of a step waits for
// communication; and how near rates are to data sheets and to what was published. Empty where nothing of this
// is known.
std::vector<std::string> standing_of(const std::vector<MergedPoint>& points, const References& references,
                                     const std::vector<ReferencePoint>& matches,
                                     const std::vector<RatedOperation>& rates);

}  // namespace shardmark
