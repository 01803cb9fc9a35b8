// Writes a whole study, raw samples included, for `report --raw`.
#pragma once

#include <string>

#include "cli/table_output.h"

namespace shardmark {

// Writes CSV files into the folder of --csv, or one JSON document to the standard output.
void write_raw(const std::string& study, const TableOutput& output);

}  // namespace shardmark
