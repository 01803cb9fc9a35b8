// All output that people read leaves the program here: lines on stderr, tables on stdout. Text from files and
// flags may contain terminal control sequences; they are shown escaped and have no effect (printable() in
// base/text.h).
#pragma once

#include <cstddef>
#include <string>

namespace shardmark {

void log_line(const std::string& line);     // "shardmark: line"
void log_warning(const std::string& line);  // "shardmark: warning: line"

// Writes the text unchanged, in one write. If stderr cannot take it (a full disk), the text is lost, and so
// are the lines above: that is no reason to end a run.
void log_raw(const std::string& text);

// Writes to the standard output, control characters escaped. Throws SystemError if that fails.
void print(const std::string& text);
// The same during a run of many ranks, which does not end if the standard output fails.
void print_progress(const std::string& text);
// Writes the text unchanged, for CSV and JSON, which have an escaping of their own. Throws SystemError if
// that fails.
void print_data(const std::string& text);

// Width of the terminal that stderr writes to; 0 if stderr is not a terminal.
size_t terminal_columns();

// The last line of a terminal, rewritten in place to show progress. Clear it before other lines are written.
class StatusLine {
 public:
  void show(const std::string& text);  // shortened to the terminal's width
  void clear();
  bool is_shown() const { return is_shown_; }

 private:
  bool is_shown_ = false;
};

// The first line of an error message that may bring a stack trace along.
std::string first_line(const std::string& text);

}  // namespace shardmark
