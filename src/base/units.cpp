// Formatting of numbers with units.
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace shardmark {
namespace {

std::string scaled(double value, const std::array<std::pair<double, const char*>, 5>& scale) {
  auto unit = scale.begin();
  // A value that would round up to the next unit takes that unit: 1.00 MiB, not 1024 KiB.
  const auto rounds_below = [](double x, double limit) { return std::abs(x) < limit * (1 - 0.5e-3); };
  while (unit + 1 != scale.end() && rounds_below(value, unit->first)) ++unit;
  const double number = value / unit->first;
  const int decimals = std::abs(number) >= 99.95 ? 0 : std::abs(number) >= 9.995 ? 1 : 2;  // three digits
  return fmt::format("{:.{}f} {}", number, decimals, unit->second);
}

std::string grouped(std::string digits) {
  const size_t start = digits.starts_with('-') ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > static_cast<std::ptrdiff_t>(start);
       at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

}  // namespace

std::string format_bytes(double bytes) {
  if (std::abs(bytes) < 1024) return fmt::format("{:.0f} B", bytes);
  return scaled(bytes, {{{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}});
}

std::string format_seconds(double seconds) {
  if (std::abs(seconds) >= 120) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds == 0) return "0 s";
  return scaled(seconds, {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {1e-12, "ps"}}});
}

std::string format_clock(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const int64_t minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string format_count(double count) {
  if (count != std::floor(count) || std::abs(count) > 1e15) return fmt::format("{:.6g}", count);
  return grouped(fmt::format("{:.0f}", count));
}

std::string format_number(double value, int significant_digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  // Rounding may add a digit: 9.996 with three digits is 10.0.
  if (std::abs(value) >= std::pow(10, magnitude + 1) * (1 - 0.5 * std::pow(10, -significant_digits)))
    ++magnitude;
  if (magnitude < -6 || magnitude > 15) return fmt::format("{:.{}e}", value, significant_digits - 1);
  if (magnitude >= significant_digits - 1) return grouped(fmt::format("{:.0f}", value));
  return fmt::format("{:.{}f}", value, significant_digits - 1 - magnitude);
}

}  // namespace shardmark
