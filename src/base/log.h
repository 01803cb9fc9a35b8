// One line per event on stderr, prefixed where it helps.
#pragma once

#include <string>

namespace shardmark {

void log_line(const std::string& line);     // "shardmark: line"
void log_warning(const std::string& line);  // "shardmark: warning: line"

}  // namespace shardmark
