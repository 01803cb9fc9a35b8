// The parts of an overview as HTML.
#pragma once

#include <string>

#include "analysis/overview/overview.h"

namespace shardmark {

std::string studies_html(const Overview& overview);
std::string answers_html(const Overview& overview);
std::string cautions_html(const Overview& overview);

}  // namespace shardmark
