// Everything that people read leaves the program here: lines on stderr, tables on stdout. Text of files and
// flags may hold what a terminal would obey; it is shown instead (printable() in base/text.h).
#pragma once

#include <cstddef>
#include <string>

namespace shardmark {

void log_line(const std::string& line);     // "shardmark: line"
void log_warning(const std::string& line);  // "shardmark: warning: line"

// As it is, in one write. What stderr cannot take, on a full disk, is lost, as above: no reason to end.
void log_raw(const std::string& text);

void print(const std::string& text);  // to the standard output; SystemError where that fails
// The same during a run of many ranks, which a failing standard output does not end.
void print_progress(const std::string& text);
// As it is: CSV and JSON, which have an escaping of their own.
void print_data(const std::string& text);

// How wide the terminal is that stderr writes to; 0: it is none.
size_t terminal_columns();

// A line at the end of a terminal that is written anew: what goes on. Other lines go above it.
class StatusLine {
 public:
  void show(const std::string& text);  // as far as it fits into the terminal's width
  void clear();
  bool is_shown() const { return is_shown_; }

 private:
  bool is_shown_ = false;
};

std::string first_line(const std::string& text);  // of an error that brings its stack along

}  // namespace shardmark
