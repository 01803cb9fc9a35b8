// Lines go out with one write each, so that lines of many ranks do not mix.
#include "base/log.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {

namespace {

bool write_to(std::FILE* stream, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0 &&
         std::ferror(stream) == 0;  // of what was written before
}

}  // namespace

void log_raw(const std::string& text) { write_to(stderr, text); }

void log_line(const std::string& line) { log_raw("shardmark: " + printable(line) + "\n"); }
void log_warning(const std::string& line) { log_line("warning: " + line); }

void print(const std::string& text) { print_data(printable(text)); }
void print_progress(const std::string& text) { write_to(stdout, printable(text)); }

void print_data(const std::string& text) {
  errno = 0;
  if (write_to(stdout, text)) return;
  const std::string reason = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  throw SystemError("cannot write to the standard output" + reason);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace shardmark
