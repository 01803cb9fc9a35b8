// A name alternates text and brackets. Each bracket multiplies the names built so far by its numbers.
#include "base/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {
namespace {

constexpr size_t kMostNames = 1'000'000;

class Hostlist {
 public:
  explicit Hostlist(const std::string& text) : text_(text) {}

  std::vector<std::string> expand() const {
    std::vector<std::string> all;
    for (std::string_view name : split(text_)) {
      const auto names = names_of(name);
      if (all.size() + names.size() > kMostNames) fail("more than a million names");
      all.insert(all.end(), names.begin(), names.end());
    }
    return all;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(
        fmt::format("{}: {}; expected names such as n[01-16,20],login1", quoted_line(text_), what));
  }

  // Splits at commas outside brackets.
  std::vector<std::string_view> split(std::string_view text) const {
    std::vector<std::string_view> parts;
    bool inside = false;
    size_t begin = 0;
    for (size_t at = 0; at <= text.size(); ++at) {
      if (at == text.size() || (text[at] == ',' && !inside)) {
        parts.push_back(text.substr(begin, at - begin));
        if (parts.back().empty()) fail("an empty name");
        begin = at + 1;
      } else if (text[at] == '[' || text[at] == ']') {
        if (inside == (text[at] == '[')) fail("brackets that do not match");
        inside = !inside;
      }
    }
    if (inside) fail("brackets that do not match");
    return parts;
  }

  std::vector<std::string> names_of(std::string_view name) const {
    std::vector<std::string> names = {""};
    while (!name.empty()) {
      const size_t open = std::min(name.find('['), name.size()),
                   close = std::min(name.find(']'), name.size());
      for (std::string& one : names) one += name.substr(0, open);
      if (open == name.size()) break;
      const auto numbers = numbers_in(name.substr(open + 1, close - open - 1));
      if (names.size() * numbers.size() > kMostNames) fail("more than a million names");
      std::vector<std::string> longer;
      for (const std::string& one : names)
        for (const std::string& number : numbers) longer.push_back(one + number);
      names = std::move(longer);
      name.remove_prefix(close + 1);
    }
    return names;
  }

  // Expands the inside of a bracket, such as "01-16,20".
  std::vector<std::string> numbers_in(std::string_view ranges) const {
    std::vector<std::string> numbers;
    for (std::string_view range : split(ranges)) {
      const size_t dash = range.find('-');
      const std::string_view first = range.substr(0, dash);
      const size_t least = number(first);
      const size_t most = dash == range.npos ? least : number(range.substr(dash + 1));
      if (most < least) fail("a range that runs backwards");
      if (most - least >= kMostNames - numbers.size()) fail("more than a million names");
      for (size_t i = 0; i <= most - least; ++i)
        numbers.push_back(fmt::format("{:0{}}", least + i, first.size()));
    }
    return numbers;
  }

  size_t number(std::string_view digits) const {
    size_t value = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    if (error != std::errc() || end != digits.end()) fail("something else than numbers in brackets");
    return value;
  }

  const std::string& text_;
};

}  // namespace

std::vector<std::string> expand_hostlist(const std::string& text) { return Hostlist(text).expand(); }

}  // namespace shardmark
