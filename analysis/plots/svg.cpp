// A Plot as SVG: legend on top, axes below it. Widths of texts are estimated, for there is no font to ask.
#include "analysis/plots/svg.h"

#include <algorithm>

#include "analysis/plots/svg_canvas.h"
#include "analysis/plots/svg_curves.h"

namespace shardmark {
namespace {

constexpr double kWidth = 420, kAxesHeight = 210;  // of the drawing; the page scales it
constexpr double kRowHeight = 17;
constexpr double kLegendLine = 15;
constexpr double kBelow = 34;  // ticks and label of the lower axis

double longest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text));
  return width;
}

// Rows in which the legend's entries stand from the left.
double draw_legend(SvgCanvas& canvas, const Plot& plot) {
  double x = 4, y = 10;
  for (const Curve& curve : plot.curves) {
    if (curve.name.empty()) continue;
    const double width = 30 + text_width(curve.name) + 14;
    if (x > 4 && x + width > kWidth) {
      x = 4;
      y += kLegendLine;
    }
    draw_key(canvas, plot, curve, x, y);
    canvas.text(x + 30, y + 3.5, curve.name);
    x += width;
  }
  return y + kLegendLine;
}

void draw_lower_axis(SvgCanvas& canvas, const Frame& frame, const Axis& axis, const Range& range) {
  const int most = static_cast<int>(frame.width() / 50);
  for (const Tick& tick : axis_ticks(axis, range, most)) {
    const double x = frame.left + axis_place(axis, range, tick.at) * frame.width();
    canvas.line("grid", x, frame.top, x, frame.bottom);
    canvas.text(x, frame.bottom + 13, tick.label, "middle");
  }
  canvas.line("axis", frame.left, frame.bottom, frame.right, frame.bottom);
  canvas.text((frame.left + frame.right) / 2, frame.bottom + 29, axis.label, "middle");
}

void draw_left_axis(SvgCanvas& canvas, const Frame& frame, const Axis& axis, const Range& range,
                    const std::vector<Tick>& ticks) {
  for (const Tick& tick : ticks) {
    const double y = frame.bottom - axis_place(axis, range, tick.at) * frame.height();
    canvas.line("grid", frame.left, y, frame.right, y);
    canvas.text(frame.left - 5, y + 3.5, tick.label, "end");
  }
  canvas.line("axis", frame.left, frame.top, frame.left, frame.bottom);
  canvas.upright_text(10, (frame.top + frame.bottom) / 2, axis.label, "middle");
}

void draw_rows(SvgCanvas& canvas, const Frame& frame, const std::vector<std::vector<std::string>>& names) {
  const double pitch = frame.height() / static_cast<double>(names.size());
  for (size_t row = 0; row < names.size(); ++row) {
    const double middle = frame.top + (static_cast<double>(row) + 0.5) * pitch + 3.5;
    const double first = middle - 6 * static_cast<double>(names[row].size() - 1);
    for (size_t line = 0; line < names[row].size(); ++line)
      canvas.text(frame.left - 5, first + 12 * static_cast<double>(line), names[row][line], "end",
                  frame.left - 8);
  }
  canvas.line("axis", frame.left, frame.top, frame.left, frame.bottom);
}

std::string svg_of_rows(const Plot& plot) {
  SvgCanvas canvas(kWidth);
  const double top = draw_legend(canvas, plot);
  std::vector<std::vector<std::string>> names;
  double widest = 0;
  bool any_broken = false;
  for (const std::string& row : plot.rows) {
    names.push_back(name_lines(row));
    widest = std::max(widest, longest(names.back()));
    any_broken |= names.back().size() > 1;
  }
  const double left = std::min(widest + 10, 0.55 * kWidth);
  const double pitch = any_broken ? 1.65 * kRowHeight : kRowHeight;
  const Frame frame{left, top, kWidth - 8, top + pitch * static_cast<double>(plot.rows.size())};
  const Range range = value_range(plot);
  draw_lower_axis(canvas, frame, plot.value, range);
  draw_rows(canvas, frame, names);
  draw_curves(canvas, plot, frame, over_range(plot), range);
  return canvas.svg(frame.bottom + kBelow, plot.title + ": " + plot.about);
}

std::string svg_of_axes(const Plot& plot) {
  SvgCanvas canvas(kWidth);
  const double top = draw_legend(canvas, plot);
  const Range over = over_range(plot), value = value_range(plot);
  const std::vector<Tick> ticks = axis_ticks(plot.value, value);
  std::vector<std::string> labels;
  labels.reserve(ticks.size());
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  const Frame frame{longest(labels) + 24, top + 4, kWidth - 8, top + 4 + kAxesHeight};
  draw_left_axis(canvas, frame, plot.value, value, ticks);
  draw_lower_axis(canvas, frame, plot.over, over);
  draw_curves(canvas, plot, frame, over, value);
  return canvas.svg(frame.bottom + kBelow, plot.title + ": " + plot.about);
}

}  // namespace

std::string to_svg(const Plot& plot) { return plot.rows.empty() ? svg_of_axes(plot) : svg_of_rows(plot); }

}  // namespace shardmark
