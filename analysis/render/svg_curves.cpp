#include "analysis/render/svg_curves.h"

#include <algorithm>

#include "analysis/render/mark_names.h"

namespace shardmark {
namespace {

constexpr const char* kTargetColor = "#000";
constexpr double kBarReach = 0.36, kTargetReach = 0.46, kSampleReach = 0.3;  // of a row, to either side

std::string said_by(const Curve& curve, const PlotPoint& point) {
  return point.text.empty() ? "" : curve.name + ": " + point.text;
}

// Turns points into places of the drawing. Without rows, `over` runs to the right and values run upwards.
// With rows the plot lies on its side: values run to the right, and `over` is the number of the row, from
// the top.
class Drawer {
 public:
  Drawer(SvgCanvas& canvas, const Plot& plot, const Frame& frame, const Range& over, const Range& value)
      : canvas_(canvas),
        plot_(plot),
        frame_(frame),
        over_(over),
        value_(value),
        bar_ends_(plot.rows.size(), 0) {}

  void draw(const Curve& curve) {
    switch (curve.form) {
      case Form::measured:
      case Form::dots:
        return draw_measured(curve);
      case Form::law:
        return draw_law(curve);
      case Form::bar:
        return draw_bars(curve);
      case Form::target:
        return draw_targets(curve);
      case Form::samples:
        return draw_samples(curve);
    }
  }

  void draw(const ReferenceLine& line) {
    // A reference value is a level line in an upright plot, and an upright line in one that lies on its
    // side.
    const bool flat = line.on_value == plot_.rows.empty();
    const Place at = line.on_value ? place_of(over_.low, line.at) : place_of(line.at, value_.low);
    if (flat) {
      canvas_.line("reference", frame_.left, at.y, frame_.right, at.y);
      canvas_.text(frame_.right - 2, at.y - 3, line.name, "end");
    } else {
      canvas_.line("reference", at.x, frame_.top, at.x, frame_.bottom);
      canvas_.upright_text(at.x - 3, frame_.bottom - 4, line.name, "start");
    }
  }

 private:
  bool has_rows() const { return !plot_.rows.empty(); }

  Place place(const PlotPoint& point) const { return place_of(point.over, point.value); }
  Place place_of(double over, double value) const {
    const double along = axis_place(plot_.value, value_, value);
    if (has_rows())
      return {frame_.left + along * frame_.width(),
              frame_.top + (over - over_.low) / (over_.high - over_.low) * frame_.height()};
    return {frame_.left + axis_place(plot_.over, over_, over) * frame_.width(),
            frame_.bottom - along * frame_.height()};
  }
  std::vector<PlotPoint> shown(const Curve& curve) const {
    std::vector<PlotPoint> points = curve.points;
    std::erase_if(points, [&](const PlotPoint& point) { return !can_show(plot_, point); });
    return points;
  }
  std::vector<Place> places(const std::vector<PlotPoint>& points, double reach = 0) const {
    std::vector<Place> places;
    places.reserve(points.size());
    for (const PlotPoint& point : points) places.push_back(place_of(point.over + reach, point.value));
    return places;
  }
  double row_height() const { return frame_.height() / static_cast<double>(plot_.rows.size()); }

  void draw_measured(const Curve& curve) {
    const LineStyle style = line_style(curve.style);
    const std::vector<PlotPoint> points = shown(curve);
    if (!has_rows() && curve.form == Form::measured) canvas_.path(places(points), style);
    for (const PlotPoint& point : points)
      if (has_interval(point))
        canvas_.interval(place_of(point.over, point.low), place_of(point.over, point.high), style.color);
    for (const PlotPoint& point : points)
      canvas_.marker(place(point), style, point.unreliable, said_by(curve, point));
  }

  void draw_law(const Curve& curve) {
    const std::vector<PlotPoint> points = shown(curve);
    canvas_.path(places(points), line_style(curve.style));
    for (const PlotPoint& point : points)
      if (!point.text.empty()) canvas_.spot(place(point), said_by(curve, point));
  }

  void draw_bars(const Curve& curve) {
    for (const PlotPoint& point : shown(curve)) {
      // Each bar of a row begins where the one before it ended.
      double& end = bar_ends_[static_cast<size_t>(point.over)];
      const Place from = place_of(point.over - kBarReach, end);
      const Place to = place_of(point.over + kBarReach, end += point.value);
      if (to.x > from.x)
        canvas_.rectangle({from.x, from.y, to.x, to.y}, fill_style(curve.style), said_by(curve, point));
    }
  }

  void draw_targets(const Curve& curve) {
    const std::vector<PlotPoint> points = shown(curve);
    canvas_.strokes(places(points, kTargetReach), 2 * kTargetReach * row_height(), kTargetColor, 2);
    for (const PlotPoint& point : points) canvas_.spot(place(point), said_by(curve, point));
  }

  void draw_samples(const Curve& curve) {
    std::vector<PlotPoint> points = shown(curve);
    // In order of their places, equal strokes follow each other, and strokes() draws them once. Thousands
    // of steps then do not make a large file.
    std::sort(points.begin(), points.end(), [](const PlotPoint& a, const PlotPoint& b) {
      return std::pair(a.over, a.value) < std::pair(b.over, b.value);
    });
    canvas_.strokes(places(points, kSampleReach), 2 * kSampleReach * row_height(),
                    line_style(curve.style).color, 0.5);
  }

  SvgCanvas& canvas_;
  const Plot& plot_;
  Frame frame_;
  Range over_, value_;
  std::vector<double> bar_ends_;
};

}  // namespace

void draw_curves(SvgCanvas& canvas, const Plot& plot, const Frame& frame, const Range& over,
                 const Range& value) {
  Drawer drawer(canvas, plot, frame, over, value);
  // The order decides what lies on top: reference lines, then curves, then names.
  canvas.begin_area(frame);
  for (const ReferenceLine& line : plot.references) drawer.draw(line);
  for (const Curve& curve : plot.curves) drawer.draw(curve);
  if (plot.names_marks) draw_mark_names(canvas, plot, frame, over, value);
  canvas.end_area();
}

void draw_key(SvgCanvas& canvas, const Plot& plot, const Curve& curve, double x, double y) {
  const LineStyle style = line_style(curve.style);
  switch (curve.form) {
    case Form::measured:
    case Form::dots:
      if (plot.rows.empty()) canvas.path({{x, y}, {x + 24, y}}, style);
      return canvas.marker({x + 12, y}, style, false, "");
    case Form::law:
      return canvas.path({{x, y}, {x + 24, y}}, style);
    case Form::bar:
      return canvas.rectangle({x + 4, y - 5, x + 24, y + 5}, fill_style(curve.style), "");
    case Form::target:
      return canvas.strokes({{x + 14, y + 6}}, 12, kTargetColor, 2);
    case Form::samples:
      return canvas.strokes({{x + 10, y + 5}, {x + 14, y + 5}, {x + 17, y + 5}}, 10, style.color, 0.7);
  }
}

}  // namespace shardmark
