// Splits text into lines and words, and collects lines that cannot be used.
#include "import/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace shardmark::imports {
namespace {

constexpr size_t kMostNamedLines = 5;

template <class Number>
Number read_or(std::string_view word, Number otherwise) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? number : otherwise;
}

}  // namespace

void for_each_line(const Source& source, const std::function<void(const Line& line)>& visit) {
  const std::string_view text = source.text;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit({line, ++number, end < text.size()});
    begin = end + 1;
  }
}

std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t";
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

double number_in(std::string_view word) { return read_or(word, Measures::kNone); }
int64_t whole_in(std::string_view word) { return read_or(word, int64_t{-1}); }
bool is_number(std::string_view word) { return std::isfinite(number_in(word)); }

std::string place(const Source& source, int64_t line) { return fmt::format("{}:{}: ", source.name, line); }

void LeftOut::add(const Line& line, const std::string& why) {
  if (first_.size() == kMostNamedLines)
    ++more_;
  else
    add_at(place(source_, line.number), why + ": " + quoted_line(std::string(line.text)));
}

void LeftOut::add_at(const std::string& where, const std::string& why) {
  if (first_.size() == kMostNamedLines)
    ++more_;
  else
    first_.push_back(where + "left out: " + why);
}

void LeftOut::report(std::vector<std::string>& warnings) const {
  warnings.insert(warnings.end(), first_.begin(), first_.end());
  if (more_ > 0)
    warnings.push_back(
        fmt::format("{}: {} more {} left out", source_.name, more_, more_ == 1 ? "is" : "are"));
}

}  // namespace shardmark::imports
