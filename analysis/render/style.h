// Colours, markers, dashes and fillings. No two curves of one plot differ in colour alone: a style is a
// colour, a marker and a dash together, and neighbouring fillings differ in lightness or are hatched.
// Colours: Okabe and Ito, Color Universal Design, 2008 (distinct with every kind of colour blindness),
// ordered so that neighbours differ in lightness too; orange and sky blue darker than theirs, to have three
// times the contrast to white paper that is asked of a line (WCAG 2.2, 1.4.11). page.css has the same
// colours for dark paper.
#pragma once

#include <array>
#include <cstddef>

#include "analysis/render/plot.h"

namespace shardmark {

enum class Marker { circle, square, triangle, diamond, nabla, pentagon, star };

struct LineStyle {
  const char* color;
  Marker marker;
  std::array<int, 4> dash;  // lengths on, off, on, off; zeros: solid
};

inline constexpr std::array<LineStyle, 7> kLineStyles = {{
    {"#0072B2", Marker::circle, {}},
    {"#C98500", Marker::square, {6, 3, 0, 0}},
    {"#000000", Marker::diamond, {2, 2, 0, 0}},
    {"#009E73", Marker::triangle, {8, 3, 2, 3}},
    {"#CC79A7", Marker::nabla, {10, 3, 0, 0}},
    {"#D55E00", Marker::pentagon, {4, 2, 1, 2}},
    {"#2F93D1", Marker::star, {1, 2, 0, 0}},
}};
inline constexpr const char* kNeutralColor = "#777777";

inline LineStyle line_style(int style) {
  if (style == kNeutral) return {kNeutralColor, Marker::circle, {5, 4, 0, 0}};
  LineStyle found = kLineStyles[static_cast<size_t>(style) % kLineStyles.size()];
  // From the eighth curve on colours come again, with another's marker and dash.
  const size_t turn = static_cast<size_t>(style) / kLineStyles.size();
  found.marker = kLineStyles[(static_cast<size_t>(style) + turn) % kLineStyles.size()].marker;
  found.dash = kLineStyles[(static_cast<size_t>(style) + 3 * turn) % kLineStyles.size()].dash;
  return found;
}

struct FillStyle {
  const char* color;
  bool hatched;
};

inline constexpr std::array<FillStyle, 5> kFillStyles = {
    {{"#0072B2", false}, {"#9CCBE8", false}, {"#D55E00", true}, {"#8C8C8C", false}, {"#E4E4E4", false}}};

inline const FillStyle& fill_style(int style) {
  return kFillStyles[static_cast<size_t>(style) % kFillStyles.size()];
}

}  // namespace shardmark
