// Logs as lines of words.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "import/source.h"

namespace shardmark::imports {

struct Line {
  std::string_view text;
  int64_t number = 0;    // in the file, from 1
  bool is_whole = true;  // it ends with a line break
};

void for_each_line(const Source& source, const std::function<void(const Line& line)>& visit);

std::vector<std::string_view> words_in(std::string_view line);
bool is_number(std::string_view word);
double number_in(std::string_view word);  // NaN if it is not a number
int64_t whole_in(std::string_view word);  // -1 if it is not a whole number

std::string place(const Source& source, int64_t line);  // "a.log:37: "

// Collects lines that cannot be used. The first few are reported with their numbers, the others are counted.
class LeftOut {
 public:
  explicit LeftOut(const Source& source) : source_(source) {}
  void add(const Line& line, const std::string& why);
  void add_at(const std::string& where, const std::string& why);  // where: "a.json: result 3: "
  void report(std::vector<std::string>& warnings) const;

 private:
  const Source& source_;
  std::vector<std::string> first_;
  int64_t more_ = 0;
};

}  // namespace shardmark::imports
