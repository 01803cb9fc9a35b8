// The report as one HTML file that needs nothing else: no network, no fonts, no other files.
#pragma once

#include <string>

#include "analysis/report.h"

namespace shardmark {

// Summary in words, then the tables of the report with their plots, environment, and the suite of every
// point; of a very large study the first of each, and how many are left out. What a study says is text, never
// markup.
std::string make_page(const ReportData& data, const ReportInputs& inputs = {});

}  // namespace shardmark
