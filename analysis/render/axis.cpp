#include "analysis/render/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace shardmark {
namespace {

// The range of an axis, from the values that it has to show.
class Extent {
 public:
  explicit Extent(const Axis& axis) : axis_(axis) {}
  void add(double value) {
    if (!std::isfinite(value) || (axis_.scale != Scale::linear && value <= 0)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  // Logarithmic: a twentieth of the span on each side, but at least 8 %, so that a single value is not on
  // the edge. Linear: the axis includes zero if it has to; else it shows at least `least_span` of its
  // largest value. An axis that begins at zero has no room below it, as lengths start there.
  Range range() const {
    if (low_ > high_) return axis_.scale == Scale::linear ? Range{0, 1} : Range{1, 10};
    if (axis_.scale != Scale::linear) {
      const double room = std::max(std::pow(high_ / low_, 0.05), 1.08);
      return {low_ / room, high_ * room};
    }
    Range inside = axis_.from_zero ? Range{std::min(low_, 0.0), std::max(high_, 0.0)} : Range{low_, high_};
    const double least = axis_.least_span * std::max(std::abs(inside.low), std::abs(inside.high));
    if (const double lacks = least - (inside.high - inside.low); lacks > 0 && !axis_.from_zero)
      inside = {inside.low - lacks / 2, inside.high + lacks / 2};
    double room = axis_.room * (inside.high - inside.low);
    if (room == 0) room = std::max(std::abs(inside.high), 1.0) * axis_.room;
    const bool is_whole = axis_.from_zero && inside.low == 0;
    return {is_whole ? 0 : inside.low - room, inside.high + room};
  }

 private:
  const Axis& axis_;
  double low_ = INFINITY, high_ = -INFINITY;
};

std::string bytes_label(double value) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (value >= 1024 && unit < std::size(units) - 1) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

struct Thousands {
  double factor = 1;
  const char* letter = "";
};

// From 100,000 on nobody counts zeros.
Thousands thousands_of(double value) {
  const double size = std::abs(value);
  return size >= 1e9   ? Thousands{1e9, "G"}
         : size >= 1e6 ? Thousands{1e6, "M"}
         : size >= 1e5 ? Thousands{1e3, "k"}
                       : Thousands{};
}

// Labels that can be compared. On a linear axis all have the unit and the decimals of the one that needs
// most. On a logarithmic one over more than a factor of 3 each has its own, as 0.1, 1 and 10 need different
// ones.
std::vector<Tick> labelled(const Axis& axis, std::vector<double> values) {
  // Over decades each has its own unit and decimals.
  const bool varies = axis.scale != Scale::linear && !values.empty() && values.back() >= 3 * values.front();
  const std::vector<double> places = values;
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  std::vector<const char*> letters;
  for (double& value : values) {
    const Thousands thousands = axis.is_bytes ? Thousands{} : thousands_of(varies ? value : largest);
    // 131,072 ranks are no 131k.
    const bool is_short = axis.scale != Scale::log2 || std::fmod(value, thousands.factor) == 0;
    if (is_short) value /= thousands.factor;
    letters.push_back(is_short && value != 0 ? thousands.letter : "");
  }
  int decimals = 0;
  const auto needed = [](double value) {
    int count = 0;
    for (; count < 9 && std::abs(value - std::round(value)) > 1e-6 * std::abs(value); ++count) value *= 10;
    return count;
  };
  for (double value : values) decimals = std::max(decimals, needed(value));
  std::vector<Tick> ticks;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const int own = varies ? needed(value) : value == 0 && *letters.back() != 0 ? 0 : decimals;
    const std::string number =
        own == 0 ? format_count(std::round(value)) : fmt::format("{:.{}f}", value, own);
    ticks.push_back({places[i], axis.is_bytes ? bytes_label(places[i]) : number + letters[i]});
  }
  return ticks;
}

// The least 1, 2 or 5 times a power of ten that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> linear_ticks(const Range& range, int most) {
  const double step = round_step((range.high - range.low) / most);
  std::vector<double> values;
  for (double k = std::ceil(range.low / step); k * step <= range.high; ++k) values.push_back(k * step);
  return values;
}

// Powers of the base. If all would be too many, every second one, every third ... The exponents are
// multiples of the stride, so that 1 has a tick wherever the axis reaches it.
std::vector<double> power_ticks(const Range& range, int most, double base) {
  const double exponents = std::log(range.high / range.low) / std::log(base);
  const double stride = std::max(1.0, std::ceil(exponents / most));
  const double first = std::ceil(std::log(range.low) / std::log(base) / stride - 1e-9) * stride;
  std::vector<double> values;
  for (double k = first; std::pow(base, k) <= range.high * (1 + 1e-9); k += stride)
    values.push_back(std::pow(base, k));
  return values;
}

constexpr int kUsual = 10;  // most ticks of an axis that nobody zooms

// How many ticks fit depends on the decades seen: powers of ten over 2.5 decades and more; also 2 and 5
// times them below; also 1.5, 3, 4 and 7 times below one decade; and below half a decade the axis is nearly
// linear, so the ticks are as well. An axis for who zooms takes the finer ones earlier.
std::vector<double> log10_ticks(const Range& range, int most) {
  const double decades = std::log10(range.high / range.low);
  const bool is_fine = most > kUsual;  // for who zooms
  if (decades >= (is_fine ? 10 : 2.5)) return power_ticks(range, most, 10);
  if (decades < 0.5) return linear_ticks(range, most);
  std::vector<double> values;
  for (double power = std::pow(10, std::floor(std::log10(range.low))); power <= range.high; power *= 10)
    for (double factor : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0}) {
      const bool is_coarse = factor == 1 || factor == 2 || factor == 5;
      if ((is_coarse || decades < 1 || is_fine) && factor * power >= range.low &&
          factor * power <= range.high)
        values.push_back(factor * power);
    }
  return values;
}

}  // namespace

Range over_range(const Plot& plot) {
  if (!plot.rows.empty()) return {-0.5, static_cast<double>(plot.rows.size()) - 0.5};
  Extent extent(plot.over);
  for (const Curve& curve : plot.curves)
    for (const PlotPoint& point : curve.points)
      if (can_show(plot, point)) extent.add(point.over);
  for (const ReferenceLine& line : plot.references)
    if (!line.on_value) extent.add(line.at);
  return extent.range();
}

Range value_range(const Plot& plot) {
  Extent extent(plot.value);
  // Bars of a row stand one behind the other, so the axis must reach the end of the last one.
  std::vector<double> bar_ends(plot.rows.size(), 0);
  for (const Curve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) {
      if (!can_show(plot, point)) continue;
      if (curve.form == Form::bar) {
        extent.add(bar_ends[static_cast<size_t>(point.over)] += point.value);
        continue;
      }
      for (double value : {point.value, point.low, point.high}) extent.add(value);
    }
  }
  for (const ReferenceLine& line : plot.references)
    if (line.on_value) extent.add(line.at);
  return extent.range();
}

std::vector<Tick> axis_ticks(const Axis& axis, const Range& range, int most) {
  const std::vector<double> values = axis.scale == Scale::linear ? linear_ticks(range, most)
                                     : axis.scale == Scale::log2 ? power_ticks(range, most, 2)
                                                                 : log10_ticks(range, most);
  return labelled(axis, values);
}

std::vector<std::string> name_lines(const std::string& name) {
  constexpr size_t kLongest = 34;  // letters in one line
  const size_t middle = name.size() / 2, before = name.rfind(' ', middle), behind = name.find(' ', middle);
  if (name.size() <= kLongest || (before == std::string::npos && behind == std::string::npos)) return {name};
  const bool take_before =
      behind == std::string::npos || (before != std::string::npos && middle - before < behind - middle);
  const size_t at = take_before ? before : behind;
  return {name.substr(0, at), name.substr(at + 1)};
}

double axis_place(const Axis& axis, const Range& range, double value) {
  if (axis.scale == Scale::linear) return (value - range.low) / (range.high - range.low);
  return std::log(value / range.low) / std::log(range.high / range.low);
}

bool can_show(const Plot& plot, const PlotPoint& point) {
  const auto fits = [](const Axis& axis, double value) {
    return std::isfinite(value) && (axis.scale == Scale::linear || value > 0);
  };
  return fits(plot.value, point.value) && (!plot.rows.empty() || fits(plot.over, point.over));
}

}  // namespace shardmark
