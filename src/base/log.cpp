// Lines go out with one write each, so that lines of many ranks do not mix.
#include "base/log.h"

#include <cstdio>

namespace shardmark {

void log_raw(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void log_line(const std::string& line) { log_raw("shardmark: " + line + "\n"); }
void log_warning(const std::string& line) { log_line("warning: " + line); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace shardmark
