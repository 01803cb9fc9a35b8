// A Plot as SVG: legend on top, axes below it. Widths of texts are estimated, for there is no font to ask.
#include "analysis/render/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/frame/assets.h"
#include "analysis/render/svg_canvas.h"
#include "analysis/render/svg_curves.h"
#include "base/text.h"

namespace shardmark {
namespace {

constexpr double kWidth = 420, kAxesHeight = 210;  // of the drawing; the page scales it
constexpr double kRowHeight = 17;
constexpr double kLegendLine = 15;
constexpr double kBelow = 34;  // ticks and label of the lower axis
constexpr double kLine = 14;   // of a document's title, subtitle and note
constexpr int kTicksLeft = 7;
constexpr int kFiner = 4;  // times as many ticks for who zooms

// A filling for bars (style.h). Its colour is that of kFillStyles' hatched one.
constexpr const char* kHatch =
    "<pattern id='hatch' width='5' height='5' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'>"
    "<rect width='5' height='5' fill='#fff'/><rect width='2' height='5' fill='#D55E00'/></pattern>";

// Everything but what stands around it.
struct Drawing {
  double height;
  std::string elements;
  std::string data;  // attributes for who zooms
};

double longest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text));
  return width;
}

// Writes the entries of the legend from the left, and begins a new row where the next one would not fit.
// Returns where the legend ends.
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

// A label of the lower axis has room for about 50 units.
int most_below(const Frame& frame) { return static_cast<int>(frame.width() / 50); }

// The ticks of an axis for the page's script: [[[12.5,"1"],...],[...]], where they stand in the drawing and
// what they say. The first list has the ticks that are drawn, the second has finer ones for who zooms.
std::string ticks_data(const Axis& axis, const Range& range, int most, double from, double to) {
  std::string data;
  for (const int at_most : {most, kFiner * most}) {
    std::string list;
    for (const Tick& tick : axis_ticks(axis, range, at_most))
      list += fmt::format("{}[{:.2f},\"{}\"]", list.empty() ? "" : ",",
                          from + axis_place(axis, range, tick.at) * (to - from), tick.label);
    data += (data.empty() ? "[" : ",[") + list + "]";
  }
  return "[" + data + "]";
}

void draw_lower_axis(SvgCanvas& canvas, const Frame& frame, const Axis& axis, const Range& range) {
  canvas.begin_group("ticks below");
  for (const Tick& tick : axis_ticks(axis, range, most_below(frame))) {
    const double x = frame.left + axis_place(axis, range, tick.at) * frame.width();
    canvas.line("grid", x, frame.top, x, frame.bottom);
    canvas.text(x, frame.bottom + 13, tick.label, "middle");
  }
  canvas.end_group();
  canvas.line("axis", frame.left, frame.bottom, frame.right, frame.bottom);
  canvas.text((frame.left + frame.right) / 2, frame.bottom + 29, axis.label, "middle");
}

void draw_left_axis(SvgCanvas& canvas, const Frame& frame, const Axis& axis, const Range& range,
                    const std::vector<Tick>& ticks) {
  canvas.begin_group("ticks left");
  for (const Tick& tick : ticks) {
    const double y = frame.bottom - axis_place(axis, range, tick.at) * frame.height();
    canvas.line("grid", frame.left, y, frame.right, y);
    canvas.text(frame.left - 5, y + 3.5, tick.label, "end");
  }
  canvas.end_group();
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

Drawing draw_with_rows(const Plot& plot) {
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
  // The names of rows take what the longest needs, but at most 55 % of the width; longer ones are squeezed.
  // If any name takes two lines, all rows are higher, so that bars keep equal distances.
  const double left = std::min(widest + 10, 0.55 * kWidth);
  const double pitch = any_broken ? 1.65 * kRowHeight : kRowHeight;
  const Frame frame{left, top, kWidth - 8, top + pitch * static_cast<double>(plot.rows.size())};
  const Range range = value_range(plot);
  draw_lower_axis(canvas, frame, plot.value, range);
  draw_rows(canvas, frame, names);
  draw_curves(canvas, plot, frame, over_range(plot), range);
  return {frame.bottom + kBelow, canvas.elements(),
          fmt::format(" data-below='{}'",
                      ticks_data(plot.value, range, most_below(frame), frame.left, frame.right))};
}

Drawing draw_with_axes(const Plot& plot) {
  SvgCanvas canvas(kWidth);
  const double top = plot.names_marks ? 0 : draw_legend(canvas, plot);
  const Range over = over_range(plot), value = value_range(plot);
  const std::vector<Tick> ticks = axis_ticks(plot.value, value, kTicksLeft);
  std::vector<std::string> labels;
  labels.reserve(ticks.size());
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  // The axis begins to the right of its longest label, with room for the upright name of the axis.
  const Frame frame{longest(labels) + 24, top + 4, kWidth - 8, top + 4 + kAxesHeight};
  draw_left_axis(canvas, frame, plot.value, value, ticks);
  draw_lower_axis(canvas, frame, plot.over, over);
  draw_curves(canvas, plot, frame, over, value);
  return {frame.bottom + kBelow, canvas.elements(),
          fmt::format(" data-below='{}' data-left='{}'",
                      ticks_data(plot.over, over, most_below(frame), frame.left, frame.right),
                      ticks_data(plot.value, value, kTicksLeft, frame.bottom, frame.top))};
}

Drawing draw(const Plot& plot) { return plot.rows.empty() ? draw_with_axes(plot) : draw_with_rows(plot); }

// Lines of a document, from y on; returns where the next one stands.
double write_lines(std::string& elements, const std::string& text, const char* css_class, double y) {
  for (const std::string& line : wrapped(text, static_cast<size_t>((kWidth - 8) / kLetterWidth))) {
    elements +=
        fmt::format("<text class='{}' x='4' y='{:.1f}'>{}</text>\n", css_class, y, escaped_markup(line));
    y += kLine;
  }
  return y;
}

}  // namespace

std::string_view svg_definitions() { return kHatch; }

std::string to_svg(const Plot& plot) {
  const Drawing drawing = draw(plot);
  return fmt::format("<svg class='plot' viewBox='0 0 {} {:.1f}' role='img' aria-label='{}'{}>\n{}</svg>\n",
                     kWidth, drawing.height, escaped_markup(plot.title + ": " + plot.about), drawing.data,
                     drawing.elements);
}

std::string to_svg_document(const Plot& plot) {
  const Drawing drawing = draw(plot);
  std::string around;
  double y = write_lines(around, plot.title, "title", 16);
  const double top = write_lines(around, plot.about, "", y) - kLine + 6;
  y = write_lines(around, plot.note, "note", top + drawing.height + kLine);
  return fmt::format(
      "<?xml version='1.0' encoding='UTF-8'?>\n<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} "
      "{1:.1f}' "
      "width='{0}' height='{1:.1f}'>\n<style>{2}.title {{ font-weight: bold; }}\n.note {{ fill: #777; "
      "}}\n</style>\n"
      "<defs>{3}</defs>\n<rect width='100%' height='100%' fill='#fff'/>\n<g class='plot'>\n{4}</g>\n"
      "<g class='plot' transform='translate(0 {5:.1f})'>\n{6}</g>\n</svg>\n",
      kWidth, y, plot_style(), kHatch, around, top, drawing.elements);
}

}  // namespace shardmark
