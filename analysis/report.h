// The report: every table that can be made from one or several studies.
#pragma once

#include <vector>

#include "analysis/table.h"
#include "schema/study.h"

namespace shardmark {

std::vector<Table> make_report(const std::vector<StudyData>& studies);

}  // namespace shardmark
