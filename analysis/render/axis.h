// What an axis shows: its range and its ticks.
#pragma once

#include <string>
#include <vector>

#include "analysis/render/plot.h"

namespace shardmark {

struct Range {
  double low = 0, high = 1;
};

struct Tick {
  double at;
  std::string label;
};

// Ranges that hold every finite point, interval and reference of the plot, with a little room; with rows, the
// over axis runs from -0.5 to the number of rows - 0.5. On a logarithmic axis only positive values count.
Range over_range(const Plot& plot);
Range value_range(const Plot& plot);

// Round values inside the range, about `most` of them at most.
std::vector<Tick> axis_ticks(const Axis& axis, const Range& range, int most = 7);

// A row's name in one line, or a long one in two of about equal length, broken at a blank.
std::vector<std::string> name_lines(const std::string& name);

// Place of a value between the ends of the range: 0 to 1.
double axis_place(const Axis& axis, const Range& range, double value);

// A point that the axes can show: finite, and positive where the axis is logarithmic.
bool can_show(const Plot& plot, const PlotPoint& point);
inline bool has_interval(const PlotPoint& point) {
  return point.low < point.value || point.value < point.high;
}

}  // namespace shardmark
