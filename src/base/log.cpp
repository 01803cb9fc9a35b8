// Each line goes out with one write, so that lines of many ranks do not mix.
#include "base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {

namespace {

bool write_to(std::FILE* stream, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0 &&
         std::ferror(stream) == 0;  // also of earlier writes
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

size_t terminal_columns() {
  constexpr size_t kUsual = 80;
  if (isatty(STDERR_FILENO) != 1) return 0;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

void StatusLine::show(const std::string& text) {
  // One column stays free: when the last column is filled, the terminal moves on to the next line.
  const size_t columns = terminal_columns();
  log_raw("\r\033[K" + shortened(printable(text, ""), columns > 1 ? columns - 1 : columns));
  is_shown_ = true;
}

void StatusLine::clear() {
  if (is_shown_) log_raw("\r\033[K");
  is_shown_ = false;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace shardmark
