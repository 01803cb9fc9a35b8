// A Plot value: what is measured over what, with what the formulas say. Made by one function per kind of plot
// (plots.h); drawn as SVG (svg.h), into the page and into files (files.h).
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace shardmark {

enum class Scale { linear, log2, log10 };

struct Axis {
  std::string label;  // with its unit: "step time (ms)"
  Scale scale = Scale::linear;
  bool from_zero = true;  // linear: lengths compare only from zero; a distribution may start where it does
  bool is_bytes = false;  // ticks read 4 KiB, not 4,096
  // Linear, not from zero: at least so much of the largest value is seen, so that noise looks like noise.
  double least_span = 0;
  double room = 0.06;  // linear: of the range, beyond the outermost points
};

struct PlotPoint {
  double over = 0;   // where on the axis below; with rows: the number of the row, 0 on top
  double value = 0;  // in the axis' unit
  double low = std::numeric_limits<double>::quiet_NaN();  // 95 % interval of the value
  double high = std::numeric_limits<double>::quiet_NaN();
  std::string text = {};    // what a reader who points at it wants to know, without the curve's name
  bool unreliable = false;  // drawn hollow: oversubscribed
};

enum class Form {
  measured,  // a marker with its interval, joined by lines (not between rows)
  dots,      // the same without the lines: a law of the same style draws one
  law,       // a line without markers: what a formula says
  bar,       // with rows: a length, which starts where the row's bars before it end
  target,    // with rows: a tick across the bar: what a formula says
  samples,   // with rows: every value as a thin tick
};

struct Curve {
  std::string name;
  Form form = Form::measured;
  int style = 0;  // which colour, marker, dash or filling (style.h); kNeutral: grey
  std::vector<PlotPoint> points;
};

inline constexpr int kNeutral = -1;

// A straight line through the whole plot, with a word at its end.
struct ReferenceLine {
  double at;
  std::string name;
  bool on_value = true;  // at this value, or at this place of the other axis
};

struct Plot {
  std::string key;    // "weak_scaling_2": names its files
  std::string table;  // name of the table that holds its numbers
  std::string title;
  std::string about;  // which of the points: "gpt2, batch 4 per rank"
  std::string note;   // how to read it: intervals, marks, formulas
  Axis over, value;
  std::vector<std::string> rows;  // not empty: the plot lies on its side, with a row for each name
  std::vector<Curve> curves;
  std::vector<ReferenceLine> references = {};
  bool names_marks = false;  // each curve is one mark, and its name stands beside it instead of in a legend
};

}  // namespace shardmark
