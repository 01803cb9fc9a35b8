#include "analysis/render/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/render/svg.h"

namespace shardmark {
namespace {

// Rounds to one decimal, a tenth of a pixel, and leaves out what says nothing ("3.0", "-0"): a plot has
// thousands of these numbers.
std::string length(double value) {
  std::string text = fmt::format("{:.1f}", value + 0.0);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string title_element(const std::string& title) {
  return title.empty() ? "" : "<title>" + escaped_markup(title) + "</title>";
}

// "points" of a polygon whose corners lie on a circle, the first one at this angle (of a full turn) from the
// top.
std::string polygon(Place at, double radius, int corners, double turn) {
  std::string points;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * M_PI * (static_cast<double>(i) / corners + turn);
    points += fmt::format("{}{},{}", i == 0 ? "" : " ", length(at.x + radius * std::sin(angle)),
                          length(at.y - radius * std::cos(angle)));
  }
  return points;
}

std::string shape(Place at, Marker marker) {
  switch (marker) {
    case Marker::circle:
      return fmt::format("<circle cx='{}' cy='{}' r='3.2'", length(at.x), length(at.y));
    case Marker::square:
      return fmt::format("<polygon points='{}'", polygon(at, 4.2, 4, 0.125));
    case Marker::triangle:
      return fmt::format("<polygon points='{}'", polygon(at, 4.4, 3, 0));
    case Marker::diamond:
      return fmt::format("<polygon points='{}'", polygon(at, 4.4, 4, 0));
    case Marker::nabla:
      return fmt::format("<polygon points='{}'", polygon(at, 4.4, 3, 0.5));
    case Marker::pentagon:
      return fmt::format("<polygon points='{}'", polygon(at, 4.2, 5, 0));
    case Marker::star:
      return fmt::format("<polygon points='{}'", polygon(at, 4.2, 6, 0));
  }
  return "";
}

}  // namespace

std::string escaped_markup(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

double text_width(const std::string& text) {
  // Bytes of UTF-8 that go on with a letter count nothing.
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return kLetterWidth * static_cast<double>(letters);
}

void SvgCanvas::line(const char* css_class, double x1, double y1, double x2, double y2) {
  elements_ += fmt::format("<path class='{}' d='M{} {}L{} {}'/>\n", css_class, length(x1), length(y1),
                           length(x2), length(y2));
}

void SvgCanvas::text(double x, double y, const std::string& text, const char* anchor, double most) {
  const bool too_long = text_width(text) > most;
  elements_ += fmt::format(
      "<text x='{}' y='{}'{}{}>{}</text>\n", length(x), length(y),
      *anchor == 's' ? "" : fmt::format(" text-anchor='{}'", anchor),
      too_long ? fmt::format(" textLength='{}' lengthAdjust='spacingAndGlyphs'", length(most)) : "",
      escaped_markup(text));
}

void SvgCanvas::name(double x, double y, const std::string& text, const char* anchor) {
  elements_ += fmt::format("<text class='name' x='{}' y='{}' text-anchor='{}'>{}</text>\n", length(x),
                           length(y), anchor, escaped_markup(text));
}

void SvgCanvas::upright_text(double x, double y, const std::string& text, const char* anchor) {
  elements_ += fmt::format(
      "<g transform='translate({} {}) rotate(-90)'><text class='upright' text-anchor='{}'>{}</text></g>\n",
      length(x), length(y), anchor, escaped_markup(text));
}

void SvgCanvas::path(const std::vector<Place>& places, const LineStyle& style) {
  if (places.empty()) return;
  std::string d, dashes;
  for (const Place& place : places)
    d += fmt::format("{}{} {}", d.empty() ? "M" : "L", length(place.x), length(place.y));
  for (const int dash : style.dash)
    if (dash > 0) dashes += fmt::format("{}{}", dashes.empty() ? "" : " ", dash);
  elements_ += fmt::format("<path class='curve' stroke='{}'{} d='{}'/>\n", style.color,
                           dashes.empty() ? "" : " stroke-dasharray='" + dashes + "'", d);
}

void SvgCanvas::strokes(const std::vector<Place>& places, double height, const std::string& color,
                        double width) {
  if (places.empty()) return;
  std::string d, last;
  for (const Place& place : places) {
    std::string stroke = fmt::format("M{} {}v-{}", length(place.x), length(place.y), length(height));
    if (stroke != last) d += stroke;  // those that would lie on each other are drawn once
    last = std::move(stroke);
  }
  elements_ += fmt::format("<path fill='none' stroke='{}' stroke-width='{}' d='{}'/>\n", color, width, d);
}

void SvgCanvas::interval(Place from, Place to, const std::string& color) {
  const bool flat = from.y == to.y;
  const double dx = flat ? 0 : 3, dy = flat ? 3 : 0;  // of the short bars at its ends
  std::string d = fmt::format("M{} {}L{} {}", length(from.x), length(from.y), length(to.x), length(to.y));
  for (const Place& end : {from, to})
    d += fmt::format("M{} {}L{} {}", length(end.x - dx), length(end.y - dy), length(end.x + dx),
                     length(end.y + dy));
  elements_ += fmt::format("<path fill='none' stroke='{}' d='{}'/>\n", color, d);
}

void SvgCanvas::marker(Place at, const LineStyle& style, bool hollow, const std::string& title) {
  elements_ += fmt::format("{}{} stroke='{}' fill='{}'>{}</{}>\n", shape(at, style.marker),
                           title.empty() ? " class='point'" : " class='mark point'", style.color,
                           hollow ? "#fff" : style.color, title_element(title),
                           style.marker == Marker::circle ? "circle" : "polygon");
}

void SvgCanvas::rectangle(const Frame& frame, const FillStyle& fill, const std::string& title) {
  elements_ += fmt::format(
      "<rect{} x='{}' y='{}' width='{}' height='{}' fill='{}' stroke='#000' stroke-width='.4'>{}</rect>\n",
      title.empty() ? "" : " class='mark'", length(frame.left), length(frame.top), length(frame.width()),
      length(frame.height()), fill.hatched ? "url(#hatch)" : fill.color, title_element(title));
}

void SvgCanvas::spot(Place at, const std::string& title) {
  elements_ += fmt::format("<circle class='mark spot point' cx='{}' cy='{}' r='4'>{}</circle>\n",
                           length(at.x), length(at.y), title_element(title));
}

// An <svg> of its own inside the drawing, with the same coordinates. The page zooms by giving it another
// viewBox; the axes around it stay. The invisible rectangle catches the mouse where nothing is drawn.
void SvgCanvas::begin_area(const Frame& frame) {
  const std::string box = fmt::format("{} {} {} {}", length(frame.left), length(frame.top),
                                      length(frame.width()), length(frame.height()));
  elements_ += fmt::format(
      "<svg class='area' x='{}' y='{}' width='{}' height='{}' viewBox='{}' preserveAspectRatio='none' "
      "overflow='visible'>\n<rect class='spot' x='{}' y='{}' width='{}' height='{}'/>\n",
      length(frame.left), length(frame.top), length(frame.width()), length(frame.height()), box,
      length(frame.left), length(frame.top), length(frame.width()), length(frame.height()));
}

void SvgCanvas::end_area() { elements_ += "</svg>\n"; }

void SvgCanvas::begin_group(const char* css_class) {
  elements_ += fmt::format("<g class='{}'>\n", css_class);
}

void SvgCanvas::end_group() { elements_ += "</g>\n"; }

}  // namespace shardmark
