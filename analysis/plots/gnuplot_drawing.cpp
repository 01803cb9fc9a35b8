// See gnuplot_drawing.h.
#include "analysis/plots/gnuplot_drawing.h"

#include <fmt/format.h>

#include "analysis/plots/axis.h"
#include "analysis/plots/style.h"

namespace shardmark {
namespace {

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

// The plot command, and the data blocks that it draws.
class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), bar_ends_(plot.rows.size(), 0) {
    for (const Curve& curve : plot.curves) add(curve);
  }
  GnuplotDrawing drawing() const { return {blocks_, "plot " + elements_ + "\n"}; }

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
                             name.empty() ? "notitle" : "title " + gnuplot_literal(name));
  }

  const Plot& plot_;
  std::vector<double> bar_ends_;
  std::string blocks_, elements_;
  int num_blocks_ = 0;
};

}  // namespace

std::string gnuplot_literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? "''" : std::string(1, static_cast<unsigned char>(c) < ' ' ? ' ' : c);
  return out + "'";
}

GnuplotDrawing gnuplot_drawing(const Plot& plot) { return Drawing(plot).drawing(); }

}  // namespace shardmark
