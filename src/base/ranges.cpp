// Converts sets of numbers to text and back.
#include "base/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr size_t kMostRanges = 6;  // in a line for people
constexpr size_t kMostListed = 3;
constexpr int kLargest = 10'000'000;

std::vector<std::string> ranges_of(const Numbers& numbers) {
  std::vector<std::string> ranges;
  for (size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    ranges.push_back(end - begin == 1 ? std::to_string(numbers[begin])
                                      : fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
  }
  return ranges;
}

int number_in(std::string_view text, const std::string& whole) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw UsageError("'" + whole + "' is not a list of numbers; accepted: 0-3,8");
  return number;
}

}  // namespace

std::string ranges_text(const Numbers& numbers) {
  return fmt::format("{}", fmt::join(ranges_of(numbers), ","));
}

Numbers numbers_from(const std::string& ranges) {
  Numbers numbers;
  for (size_t begin = 0; begin < ranges.size();) {
    const size_t end = std::min(ranges.find(',', begin), ranges.size());
    const std::string_view range = std::string_view(ranges).substr(begin, end - begin);
    const size_t dash = range.find('-');
    const int first = number_in(range.substr(0, dash), ranges);
    const int last = dash == range.npos ? first : number_in(range.substr(dash + 1), ranges);
    if (last < first || last > kLargest)
      throw UsageError(
          fmt::format("'{}' is not a list of ascending numbers up to {}; accepted: 0-3,8", ranges, kLargest));
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    begin = end + 1;
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string ranks_text(Numbers ranks) {
  std::sort(ranks.begin(), ranks.end());
  auto ranges = ranges_of(ranks);
  const bool shortened = ranges.size() > kMostRanges;
  if (shortened) ranges.resize(kMostRanges - 2);
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(ranges, ","),
                     shortened ? fmt::format(" ... ({} ranks)", ranks.size()) : "");
}

std::string names_text(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  if (names.size() == 1) return names.front();
  if (names.size() > kMostListed + 1)
    return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMostListed, ", "),
                       names.size() - kMostListed);
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

}  // namespace shardmark
