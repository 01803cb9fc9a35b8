// A Plot in gnuplot's words. All texts are in single quotes, in which gnuplot interprets nothing, and are
// told to hold no markup; data are numbers alone.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/plots/axis.h"
#include "analysis/plots/gnuplot.h"
#include "analysis/plots/gnuplot_drawing.h"
#include "analysis/plots/style.h"
#include "base/text.h"

namespace shardmark {
namespace {

constexpr int kWidth = 720;        // pixels; in the PDF 100 of them are an inch
constexpr int kAxesHeight = 380;   // of two axes, with what stands below them
constexpr int kRowHeight = 26;     // of each row, where there are rows
constexpr int kBrokenHeight = 42;  // where a row's name takes two lines
constexpr int kBelowRows = 60;
constexpr int kLineHeight = 20;     // of title and legend
constexpr size_t kLineLength = 90;  // in characters
constexpr size_t kLegendLength = 72;

std::string axis_text(char name, const Axis& axis, const Range& range, bool upside_down = false) {
  std::string text;
  if (axis.scale != Scale::linear)
    text += fmt::format("set logscale {} {}\n", name, axis.scale == Scale::log2 ? 2 : 10);
  text += upside_down ? fmt::format("set {}range [{:.9g}:{:.9g}]\n", name, range.high, range.low)
                      : fmt::format("set {}range [{:.9g}:{:.9g}]\n", name, range.low, range.high);
  return text + fmt::format("set {}label {}\n", name, gnuplot_literal(axis.label));
}

// Lines joined by line breaks, which only double quotes know.
std::string broken_literal(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : R"( . "\n" . )") + gnuplot_literal(line);
  return text;
}

std::string ticks_text(char name, const std::vector<Tick>& ticks) {
  std::string list;
  for (const Tick& tick : ticks)
    list +=
        fmt::format("{}{} {:.9g}", list.empty() ? "" : ", ", broken_literal(name_lines(tick.label)), tick.at);
  return fmt::format("set {}tics ({})\n", name, list);
}

std::string axes_text(const Plot& plot) {
  const Range over = over_range(plot), value = value_range(plot);
  if (plot.rows.empty())
    return axis_text('x', plot.over, over) + ticks_text('x', axis_ticks(plot.over, over)) +
           axis_text('y', plot.value, value) + ticks_text('y', axis_ticks(plot.value, value));
  std::vector<Tick> rows;
  for (size_t row = 0; row < plot.rows.size(); ++row)
    rows.push_back({static_cast<double>(row), plot.rows[row]});
  return axis_text('x', plot.value, value) + ticks_text('x', axis_ticks(plot.value, value)) +
         axis_text('y', plot.over, over, true) + ticks_text('y', rows) + "set grid noytics\n";
}

std::string references_text(const Plot& plot) {
  std::string text;
  for (const ReferenceLine& line : plot.references) {
    const bool flat = line.on_value == plot.rows.empty();
    const std::string from =
        flat ? fmt::format("graph 0, first {:.9g}", line.at) : fmt::format("first {:.9g}, graph 0", line.at);
    const std::string to =
        flat ? fmt::format("graph 1, first {:.9g}", line.at) : fmt::format("first {:.9g}, graph 1", line.at);
    text += fmt::format("set arrow from {} to {} nohead back lw 1 dt (4,4) lc rgb '{}'\n", from, to,
                        kNeutralColor);
    text += fmt::format("set label {} at {} {} font ',8' tc rgb '{}'\n", gnuplot_literal(line.name),
                        flat ? to : from,
                        flat ? "right offset -0.5,0.5" : "rotate by 90 left offset -0.6,0.5", kNeutralColor);
  }
  return text;
}

// Title, subtitle and legend stand above the axes, from the left edge on.
struct Head {
  std::string text;
  int height;  // pixels
};

Head head_of(const Plot& plot, int axes_height) {
  size_t longest = 1, num_names = 0;
  for (const Curve& curve : plot.curves) {
    longest = std::max(longest, curve.name.size());
    num_names += curve.name.empty() ? 0 : 1;
  }
  const size_t columns = std::clamp<size_t>(kLegendLength / (longest + 8), 1, std::max<size_t>(num_names, 1));
  const size_t legend_lines = (num_names + columns - 1) / columns;
  const std::vector<std::string> about = wrapped(plot.about, kLineLength);
  const int lines = 1 + static_cast<int>(about.size() + legend_lines);
  Head head{"", kLineHeight * lines + 30};
  const double height = head.height + axes_height;
  double from_top = 18;
  const auto label = [&](const std::string& text, const char* font) {
    head.text += fmt::format("set label {} at screen 0.015, screen {:.4f} left font ',{}'\n",
                             gnuplot_literal(text), 1 - from_top / height, font);
    from_top += kLineHeight;
  };
  label(plot.title, "13");
  for (const std::string& line : about) label(line, "10");
  head.text += fmt::format(
      "set key at screen 0.015, screen {:.4f} left top horizontal Left reverse samplen 4 spacing 1.1 maxcols "
      "{}\nset tmargin at screen {:.4f}\n",
      1 - (from_top - 8) / height, columns, 1 - head.height / height);
  return head;
}

std::string terminal_text(const Plot& plot, const std::string& kind, int height) {
  const bool is_pdf = kind == "pdfcairo";
  const std::string size = is_pdf ? fmt::format("{}in,{}in", kWidth / 100.0, height / 100.0)
                                  : fmt::format("{},{}", kWidth, height);
  return fmt::format("set terminal {} noenhanced size {} font 'sans,{}'\nset output {}\n", kind, size,
                     is_pdf ? 9 : 11, gnuplot_literal(plot.key + "." + kind.substr(0, 3)));
}

}  // namespace

std::string gnuplot_script(const Plot& plot) {
  const bool any_broken = std::any_of(plot.rows.begin(), plot.rows.end(),
                                      [](const std::string& row) { return name_lines(row).size() > 1; });
  const int row_height = any_broken ? kBrokenHeight : kRowHeight;
  const int axes_height =
      plot.rows.empty() ? kAxesHeight : kBelowRows + row_height * static_cast<int>(plot.rows.size());
  const Head head = head_of(plot, axes_height);
  const GnuplotDrawing drawing = gnuplot_drawing(plot);
  std::string script = "# Made by shardmark report --plots. Edit it, then: gnuplot " + plot.key +
                       ".gp\nreset session\nnote = " + gnuplot_literal(plot.note) + "\n" + drawing.data +
                       head.text;
  script += "set border 3\nset tics nomirror\nset grid back lw 0.5 lc rgb '#CCCCCC' dt solid\n";
  script += axes_text(plot) + references_text(plot);
  for (const char* kind : {"svg", "pngcairo", "pdfcairo"})
    script += terminal_text(plot, kind, head.height + axes_height) + drawing.command;
  return script + "unset output\n";
}

}  // namespace shardmark
