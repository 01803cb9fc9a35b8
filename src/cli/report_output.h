// What `report`, and `launch --report`, print of studies.
#pragma once

#include <vector>

#include "analysis/report.h"
#include "cli/table_output.h"

namespace shardmark {

// The first screen, and which tables there are. Where the flags ask for tables or for another format, those.
void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output);

}  // namespace shardmark
