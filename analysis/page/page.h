// The report as one HTML file that needs nothing else: no network, no fonts, no other files.
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "schema/study.h"
#include "specs/link.h"

namespace shardmark {

// Summary in words, then the tables of the report with their plots, environment, and the suite of every
// point. What a study says is text, never markup.
std::string make_page(const std::vector<StudyData>& studies, const std::vector<Table>& tables,
                      const std::vector<specs::Link>& links = specs::interconnect_links());

}  // namespace shardmark
