// The report as one HTML file that needs nothing else: no network, no fonts, no other files.
#pragma once

#include <string>
#include <vector>

#include "schema/study.h"

namespace shardmark {

// Summary in words, then tables with their plots, environment, and the suite of every point. What a study
// says is text, never markup.
std::string make_page(const std::vector<StudyData>& studies);

}  // namespace shardmark
