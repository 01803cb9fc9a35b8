// One line per event on stderr, prefixed where it helps.
#pragma once

#include <string>

namespace shardmark {

void log_line(const std::string& line);     // "shardmark: line"
void log_warning(const std::string& line);  // "shardmark: warning: line"

// As it is, in one write. What stderr cannot take, on a full disk, is lost, as above: no reason to end.
void log_raw(const std::string& text);

std::string first_line(const std::string& text);  // of an error that brings its stack along

}  // namespace shardmark
