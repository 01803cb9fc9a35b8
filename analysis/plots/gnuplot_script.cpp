// A Plot in gnuplot's words. All texts are in single quotes, in which gnuplot interprets nothing, and are
// told to hold no markup; data are numbers alone.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "analysis/plots/axis.h"
#include "analysis/plots/gnuplot.h"
#include "analysis/plots/style.h"

namespace shardmark {
namespace {

constexpr int kWidth = 720;       // pixels; in the PDF 100 of them are an inch
constexpr int kAxesHeight = 380;  // of two axes, with what stands below them
constexpr int kRowHeight = 26;    // of each row, where there are rows
constexpr int kBelowRows = 60;
constexpr int kLineHeight = 20;     // of title and legend
constexpr size_t kLineLength = 90;  // in characters
constexpr size_t kLegendLength = 72;

std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? "''" : std::string(1, static_cast<unsigned char>(c) < ' ' ? ' ' : c);
  return out + "'";
}

std::vector<std::string> wrapped(const std::string& text) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > kLineLength) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

// gnuplot's numbers of filled markers.
int point_type(Marker marker) {
  switch (marker) {
    case Marker::circle:
      return 7;
    case Marker::square:
      return 5;
    case Marker::triangle:
      return 9;
    case Marker::diamond:
      return 13;
    case Marker::nabla:
      return 11;
    case Marker::pentagon:
      return 15;
    case Marker::star:
      return 3;
  }
  return 7;
}

std::string line_text(const LineStyle& style) {
  std::string text = fmt::format("lw 1.5 lc rgb '{}'", style.color);
  std::string dashes;  // at twice the page's lengths
  for (const int length : style.dash)
    if (length > 0) dashes += (dashes.empty() ? "" : ",") + std::to_string(2 * length);
  return text + (dashes.empty() ? " dt solid" : " dt (" + dashes + ")");
}

std::string axis_text(char name, const Axis& axis, const Range& range, bool upside_down = false) {
  std::string text;
  if (axis.scale != Scale::linear)
    text += fmt::format("set logscale {} {}\n", name, axis.scale == Scale::log2 ? 2 : 10);
  text += upside_down ? fmt::format("set {}range [{:.9g}:{:.9g}]\n", name, range.high, range.low)
                      : fmt::format("set {}range [{:.9g}:{:.9g}]\n", name, range.low, range.high);
  return text + fmt::format("set {}label {}\n", name, literal(axis.label));
}

std::string ticks_text(char name, const std::vector<Tick>& ticks) {
  std::string list;
  for (const Tick& tick : ticks)
    list += fmt::format("{}{} {:.9g}", list.empty() ? "" : ", ", literal(tick.label), tick.at);
  return fmt::format("set {}tics ({})\n", name, list);
}

// The plot command, and the data blocks that it draws.
class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), bar_ends_(plot.rows.size(), 0) {
    for (const Curve& curve : plot.curves) add(curve);
  }
  const std::string& blocks() const { return blocks_; }
  std::string command() const { return "plot " + elements_ + "\n"; }

 private:
  void add(const Curve& curve) {
    const LineStyle style = line_style(curve.style);
    switch (curve.form) {
      case Form::measured:
      case Form::dots:
        return add_measured(curve, style);
      case Form::law:
        return add(values(curve.points), "lines " + line_text(style), curve.name);
      case Form::bar:
        return add_bars(curve);
      case Form::target:
        return add(strokes(curve, 0.46), "vectors nohead lw 2.5 lc rgb 'black'", curve.name);
      case Form::samples:
        return add(strokes(curve, 0.3), fmt::format("vectors nohead lw 0.6 lc rgb '{}'", style.color),
                   curve.name);
    }
  }

  void add_measured(const Curve& curve, const LineStyle& style) {
    const char side = plot_.rows.empty() ? 'y' : 'x';
    const std::string mark = fmt::format("pt {} ps 0.9", point_type(style.marker));
    std::vector<PlotPoint> doubtful = curve.points;
    std::erase_if(doubtful, [](const PlotPoint& point) { return !point.doubtful; });
    add(intervals(curve.points), fmt::format("{}errorbars pt -1 lw 1 lc rgb '{}'", side, style.color), "");
    if (plot_.rows.empty() && curve.form == Form::dots) {
      add(values(curve.points), fmt::format("points lc rgb '{}' {}", style.color, mark), "");
      add("keyentry", "linespoints " + line_text(style) + " " + mark, curve.name);
    } else if (plot_.rows.empty())
      add(values(curve.points), "linespoints " + line_text(style) + " " + mark, curve.name);
    else
      add(values(curve.points), fmt::format("points lc rgb '{}' {}", style.color, mark), curve.name);
    add(values(doubtful), "points pt 7 ps 0.45 lc rgb 'white'", "");
  }

  void add_bars(const Curve& curve) {
    std::string lines;
    for (const PlotPoint& point : curve.points) {
      if (!can_show(plot_, point)) continue;
      double& end = bar_ends_[static_cast<size_t>(point.over)];
      lines += fmt::format("{0:.9g} {1:.9g} {0:.9g} {2:.9g} {3:.9g} {4:.9g}\n", end, point.over,
                           end + point.value, point.over - 0.36, point.over + 0.36);
      end += point.value;
    }
    const FillStyle& fill = fill_style(curve.style);
    add(block(lines),
        fmt::format("boxxyerror lw 0.5 lc rgb '{}' fs {} border lc rgb 'black'", fill.color,
                    fill.hatched ? "pattern 4" : "solid 1"),
        curve.name);
  }

  // "x y" of each point; a plot with rows lies on its side.
  std::string values(const std::vector<PlotPoint>& points) {
    std::string lines;
    for (const PlotPoint& point : points)
      if (can_show(plot_, point)) lines += place(point) + "\n";
    return block(lines);
  }
  std::string intervals(const std::vector<PlotPoint>& points) {
    std::string lines;
    for (const PlotPoint& point : points)
      if (can_show(plot_, point) && has_interval(point))
        lines += fmt::format("{} {:.9g} {:.9g}\n", place(point), point.low, point.high);
    return block(lines);
  }
  // Across the rows, so far to either side.
  std::string strokes(const Curve& curve, double reach) {
    std::string lines;
    for (const PlotPoint& point : curve.points)
      if (can_show(plot_, point))
        lines += fmt::format("{:.9g} {:.9g} 0 {:.9g}\n", point.value, point.over - reach, 2 * reach);
    return block(lines);
  }
  std::string place(const PlotPoint& point) const {
    return plot_.rows.empty() ? fmt::format("{:.9g} {:.9g}", point.over, point.value)
                              : fmt::format("{:.9g} {:.9g}", point.value, point.over);
  }

  std::string block(const std::string& lines) {
    if (lines.empty()) return "";
    std::string name = fmt::format("$data{}", ++num_blocks_);
    blocks_ += fmt::format("{} << END\n{}END\n", name, lines);
    return name;
  }

  void add(const std::string& data, const std::string& with, const std::string& name) {
    if (data.empty()) return;
    elements_ += fmt::format("{}{} with {} {}", elements_.empty() ? "" : ", \\\n  ", data, with,
                             name.empty() ? "notitle" : "title " + literal(name));
  }

  const Plot& plot_;
  std::vector<double> bar_ends_;
  std::string blocks_, elements_;
  int num_blocks_ = 0;
};

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
  for (const Reference& line : plot.references) {
    const bool flat = line.on_value == plot.rows.empty();
    const std::string from =
        flat ? fmt::format("graph 0, first {:.9g}", line.at) : fmt::format("first {:.9g}, graph 0", line.at);
    const std::string to =
        flat ? fmt::format("graph 1, first {:.9g}", line.at) : fmt::format("first {:.9g}, graph 1", line.at);
    text += fmt::format("set arrow from {} to {} nohead back lw 1 dt (4,4) lc rgb '{}'\n", from, to,
                        kNeutralColor);
    text +=
        fmt::format("set label {} at {} {} font ',8' tc rgb '{}'\n", literal(line.name), to,
                    flat ? "right offset -0.5,0.5" : "rotate by 90 right offset -0.6,-0.3", kNeutralColor);
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
  const std::vector<std::string> about = wrapped(plot.about);
  const int lines = 1 + static_cast<int>(about.size() + legend_lines);
  Head head{"", kLineHeight * lines + 30};
  const double height = head.height + axes_height;
  double from_top = 18;
  const auto label = [&](const std::string& text, const char* font) {
    head.text += fmt::format("set label {} at screen 0.015, screen {:.4f} left font ',{}'\n", literal(text),
                             1 - from_top / height, font);
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
                     is_pdf ? 9 : 11, literal(plot.key + "." + kind.substr(0, 3)));
}

}  // namespace

std::string gnuplot_script(const Plot& plot) {
  const int axes_height =
      plot.rows.empty() ? kAxesHeight : kBelowRows + kRowHeight * static_cast<int>(plot.rows.size());
  const Head head = head_of(plot, axes_height);
  const Drawing drawing(plot);
  std::string script = "# Made by shardmark report --plots. Edit it, then: gnuplot " + plot.key +
                       ".gp\nreset session\nnote = " + literal(plot.note) + "\n" + drawing.blocks() +
                       head.text;
  script += "set border 3\nset tics nomirror\nset grid back lw 0.5 lc rgb '#CCCCCC' dt solid\n";
  script += axes_text(plot) + references_text(plot);
  for (const char* kind : {"svg", "pngcairo", "pdfcairo"})
    script += terminal_text(plot, kind, head.height + axes_height) + drawing.command();
  return script + "unset output\n";
}

}  // namespace shardmark
