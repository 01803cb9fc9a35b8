// The parts of the page below its tables: where and with what a study was made, and how to make it again.
#pragma once

#include <string>
#include <vector>

#include "schema/study.h"

namespace shardmark {

std::string environment_html(const StudyData& study);
std::string reproduce_html(const std::vector<StudyData>& studies);

}  // namespace shardmark
