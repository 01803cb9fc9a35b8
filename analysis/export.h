// A study as CSV and JSON for other programs: every column of the field table, the environment, and the raw
// samples.
#pragma once

#include <ostream>

#include "analysis/table/table.h"
#include "schema/study.h"

namespace shardmark {

// Columns are named as in the HDF5 file; not measured: empty. CRLF line ends, as RFC 4180 has them.
Table points_export(const StudyData& study);       // a row for each point
Table fields_export();                             // name, unit and description of the columns and series
Table environment_export(const StudyData& study);  // name, value; of lists and objects, their JSON
// id, series, rank, step, value: a line for each sample. `step` counts what the series' columns are: steps,
// windows or evaluations.
void write_samples_csv(std::ostream& out, const StudyData& study);

// {"schema", "fields", "series", "environment", "points": [{every column, "samples": {series: [[of rank 0],
// ...]}}]}; not measured: null.
void write_json(std::ostream& out, const StudyData& study);

}  // namespace shardmark
