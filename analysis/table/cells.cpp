// Digits are chosen here, once: 4 significant ones for what varies over decades, fixed decimals for
// percentages.
#include "analysis/table/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace shardmark::cells {
namespace {

constexpr double kLongPercent = 1000;  // from here on digits are grouped, and decimals say nothing

Cell missing() { return {"-", nullptr}; }

}  // namespace

Cell words(const std::string& text) {
  if (text.empty()) return missing();
  std::string line = text;
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return {line, text};
}

Cell count(int64_t value) { return {format_count(static_cast<double>(value)), value}; }

Cell number(double value, int digits) {
  if (!std::isfinite(value)) return missing();
  return {format_number(value, digits), value};
}

Cell milliseconds(double seconds) { return number(seconds * 1e3); }

Cell mebibytes(double bytes) { return number(bytes / kMebi); }

Cell percent(double ratio, int decimals) {
  const double value = ratio * 100;
  if (!std::isfinite(value)) return missing();
  if (std::abs(value) >= kLongPercent) return {format_number(value, 4), value};
  const bool is_zero =
      std::abs(value) < 0.5 * std::pow(10, -decimals);  // without the sign of what was rounded off
  return {fmt::format("{:.{}f}", is_zero ? 0 : value, decimals), value};
}

Cell difference(double measured, double predicted) {
  if (!std::isfinite(measured) || !std::isfinite(predicted)) return missing();
  if (measured == predicted) return {"0", 0.0};
  if (predicted == 0) return {"not 0", "not 0"};  // no percentage exists, and the difference must not hide
  const double percent = (measured / predicted - 1) * 100;
  if (!std::isfinite(percent)) return missing();
  if (std::abs(percent) >= kLongPercent)
    return {(percent > 0 ? "+" : "") + format_number(percent, 4), percent};
  return {fmt::format("{:+.{}f}", percent, std::abs(percent) < 10 ? 2 : 0), percent};
}

Cell yes_no(bool value) { return {value ? "yes" : "no", value}; }

Cell unless_said(bool is_said, Cell cell) {
  if (is_said) cell.text.clear();
  return cell;
}

Cell unless_default(bool is_default, Cell cell) { return is_default ? Cell{"", nullptr} : std::move(cell); }

}  // namespace shardmark::cells
