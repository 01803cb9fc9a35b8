// Strict parsing: the whole text must be a value in its range, or the error says what is accepted.
#include "base/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <regex>

#include "base/error.h"
#include "base/text.h"

namespace shardmark {
namespace {

// K, M and G alone are powers of 1024, as in nccl-tests. KB, MB and GB are powers of 1000.
const std::map<std::string, double> byte_units = {
    {"", 1},       {"B", 1},        {"K", 0x1p10}, {"KiB", 0x1p10}, {"KB", 1e3},
    {"M", 0x1p20}, {"MiB", 0x1p20}, {"MB", 1e6},   {"G", 0x1p30},   {"GiB", 0x1p30},
    {"GB", 1e9},   {"TiB", 0x1p40}, {"TB", 1e12}};

const std::map<std::string, double> time_units = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                                  {"s", 1},     {"m", 60},    {"h", 3600}};

template <class Kind>
[[noreturn]] void refuse(const Kind& kind, const std::string& text) {
  throw UsageError("expected " + kind.expected() + ", got " + quoted_line(text));
}

// Returns the number at the beginning of the text and sets `end` to where it ends. from_chars does not
// depend on the locale, and accepts neither a blank nor a plus sign in front of the number.
template <class Number>
std::optional<Number> leading_number(const std::string& text, size_t& end) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  end = static_cast<size_t>(stop - text.data());
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

template <class Number>
std::optional<Number> whole_text(const std::string& text) {
  size_t end = 0;
  const auto number = leading_number<Number>(text, end);
  return end == text.size() ? number : std::nullopt;
}

// Returns NaN if the text is not a number followed by one of the units.
double number_with_unit(const std::string& text, const std::map<std::string, double>& units) {
  size_t end = 0;
  const auto number = leading_number<double>(text, end);
  const auto unit = units.find(text.substr(end));
  return !number || unit == units.end() ? std::nan("") : *number * unit->second;
}

// Prints bytes without rounding, in the largest unit that divides them: "1 MiB".
std::string exact(int64_t bytes) {
  int power = 0;
  for (; power < 4 && bytes > 0 && bytes % 1024 == 0; ++power) bytes /= 1024;
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return fmt::format("{} {}", bytes, kUnits[power]);
}

// In characters. std::regex recurses once per character, so a long text could exhaust the stack.
constexpr size_t kMostJobTime = 20;

double number_at(const std::smatch& found, size_t group) {
  return found[group].matched ? std::stod(found.str(group)) : 0;
}

}  // namespace

std::string Whole::range() const { return fmt::format("from {} to {}", least, most); }
std::string Whole::expected() const { return "a whole number " + range(); }
int64_t Whole::parse(const std::string& text) const {
  const auto number = whole_text<int64_t>(text);
  if (!number || *number < least || *number > most) refuse(*this, text);
  return *number;
}

std::string Real::range() const {
  return is_open ? fmt::format("above {:.15g}, at most {:.15g}", least, most)
                 : fmt::format("from {:.15g} to {:.15g}", least, most);
}
std::string Real::expected() const { return "a number " + range(); }
// The conditions of this and of the next parsers are negated, so that NaN is refused: every comparison with
// NaN is false.
double Real::parse(const std::string& text) const {
  const double number = whole_text<double>(text).value_or(std::nan(""));
  if (!(number >= least && number <= most) || (is_open && number == least)) refuse(*this, text);
  return number;
}

std::string Duration::range() const {
  return fmt::format("{} 0, at most {:.15g}h", is_open ? "above" : "from", most / 3600);
}
std::string Duration::expected() const { return "a time " + range() + ", such as 120ms, 90s, 30m or 2h"; }
double Duration::parse(const std::string& text) const {
  const double seconds = number_with_unit(text, time_units);
  if (!(seconds >= 0 && seconds <= most) || (is_open && seconds == 0)) refuse(*this, text);
  return seconds;
}

std::string Bytes::range() const { return fmt::format("from {} to {}", exact(least), exact(most)); }
std::string Bytes::expected() const {
  return "a size " + range() + ", such as 25MB, 128MiB or 1GiB (K, M, G: powers of 1024)";
}
// A size may have a fraction if it is a whole number of bytes: 1.5KiB is 1536 bytes, and 1.5B is refused. A
// double holds every whole number up to 2^53, so sizes up to there are exact.
int64_t Bytes::parse(const std::string& text) const {
  const double bytes = number_with_unit(text, byte_units);
  if (!(bytes >= static_cast<double>(least) && bytes <= static_cast<double>(most)) ||
      bytes != std::floor(bytes))
    refuse(*this, text);
  return static_cast<int64_t>(bytes);
}

std::string Rate::range() const { return bytes.range() + " per second"; }
std::string Rate::expected() const { return "a rate " + range() + ", such as 25GB/s"; }
// The parser of sizes would name a size in its error, so that error is replaced by one that names a rate.
double Rate::parse(const std::string& text) const {
  if (!text.ends_with("/s")) refuse(*this, text);
  try {
    return static_cast<double>(bytes.parse(text.substr(0, text.size() - 2)));
  } catch (const UsageError&) {
    refuse(*this, text);
  }
}

std::string JobTime::range() const { return fmt::format("above 0, at most {:.15g}d", most / 86400); }
std::string JobTime::expected() const {
  return "a time " + range() + ", such as 90m, 2h, 1d, 02:00:00, 1-00:00:00 or minutes as a number";
}
// There are three forms: a number with a unit, where no unit means minutes; minutes:seconds or
// hours:minutes:seconds; and days-hours[:minutes[:seconds]]. The parts of the last two have the upper bounds
// of a clock, but the first part of each may be any number of minutes, hours or days.
double JobTime::parse(const std::string& text) const {
  static const std::regex unit_form("([0-9]{1,6}(?:\\.[0-9]{1,3})?)([smhd]?)");
  static const std::regex clock_form("([0-9]{1,5}):([0-5]?[0-9])(?::([0-5]?[0-9]))?");
  static const std::regex days_form("([0-9]{1,4})-([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9]))?)?");
  std::smatch found;
  double seconds = 0;
  if (text.size() > kMostJobTime) refuse(*this, text);
  if (std::regex_match(text, found, unit_form)) {
    const std::string unit = found.str(2);
    seconds = number_at(found, 1) * (unit == "s" ? 1 : unit == "h" ? 3600 : unit == "d" ? 86400 : 60);
  } else if (std::regex_match(text, found, clock_form)) {
    seconds = number_at(found, 1) * 60 + number_at(found, 2);
    if (found[3].matched) seconds = seconds * 60 + number_at(found, 3);
  } else if (std::regex_match(text, found, days_form)) {
    seconds = ((number_at(found, 1) * 24 + number_at(found, 2)) * 60 + number_at(found, 3)) * 60 +
              number_at(found, 4);
  }
  if (!(seconds > 0 && seconds <= most)) refuse(*this, text);
  return seconds;
}

std::string Word::range() const { return fmt::format("{}", fmt::join(accepted, ", ")); }
std::string Word::expected() const { return "one word; " + accepted_words("", accepted); }
std::string Word::parse(const std::string& text) const {
  for (const std::string& known : accepted)
    if (known == text) return known;
  throw UsageError("unknown value " + quoted_line(text) + "; " + accepted_words(text, accepted));
}

}  // namespace shardmark
