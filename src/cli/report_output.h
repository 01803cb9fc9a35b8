// Prints the report of studies, for `report` and `launch --report`.
#pragma once

#include <vector>

#include "analysis/report.h"
#include "cli/table_output.h"

namespace shardmark {

// Prints the first screen and the list of tables, or the tables or format that the flags ask for.
void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output);

}  // namespace shardmark
