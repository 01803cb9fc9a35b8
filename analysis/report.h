// The report: every table that can be made from one or several studies.
#pragma once

#include <vector>

#include "analysis/table.h"
#include "schema/study.h"

namespace shardmark {

// Tables without rows are left out; the first one describes the studies. The studies are merged: see
// merged.h.
std::vector<Table> make_report(const std::vector<StudyData>& studies);

}  // namespace shardmark
