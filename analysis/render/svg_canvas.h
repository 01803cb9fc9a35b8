// Elements of an SVG drawing, put one after the other. Lengths are in the drawing's own units, of which a
// letter of its text is about 6 wide.
#pragma once

#include <string>
#include <vector>

#include "analysis/render/style.h"

namespace shardmark {

inline constexpr double kLetterWidth = 6.1;  // mean of a sans-serif font at 11 units
double text_width(const std::string& text);

struct Frame {
  double left, top, right, bottom;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

struct Place {
  double x, y;
};

class SvgCanvas {
 public:
  explicit SvgCanvas(double width) : width_(width) {}

  void line(const char* css_class, double x1, double y1, double x2, double y2);
  // Until end_area, what is drawn belongs to what the axes enclose: the part that a reader may zoom.
  void begin_area(const Frame& frame);
  void end_area();
  void begin_group(const char* css_class);
  void end_group();
  // Squeezed where it would be wider than `most`.
  void text(double x, double y, const std::string& text, const char* anchor = "start", double most = 1e9);
  // With a halo, so that it reads on top of lines.
  void name(double x, double y, const std::string& text, const char* anchor);
  void upright_text(double x, double y, const std::string& text, const char* anchor);
  // Through the places in their order.
  void path(const std::vector<Place>& places, const LineStyle& style);
  // Strokes upwards from each place, so high.
  void strokes(const std::vector<Place>& places, double height, const std::string& color, double width);
  void interval(Place from, Place to, const std::string& color);
  // Says its title where one points; a hollow marker is of an unreliable point.
  void marker(Place at, const LineStyle& style, bool hollow, const std::string& title);
  void rectangle(const Frame& frame, const FillStyle& fill, const std::string& title);
  // Nothing to see, but it says its title where one points.
  void spot(Place at, const std::string& title);

  double width() const { return width_; }
  const std::string& elements() const { return elements_; }

 private:
  double width_;
  std::string elements_;
};

}  // namespace shardmark
