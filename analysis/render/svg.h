// A Plot as SVG: inside the page, and as a file of its own. The values are titles that appear where one
// points.
#pragma once

#include <string>
#include <string_view>

#include "analysis/render/plot.h"

namespace shardmark {

// An <svg> element that scales with the width it is given, without title, subtitle and note: those are the
// page's to write. Classes: plot, area (what the axes enclose), ticks, grid, axis, text, mark (whatever has a
// value; its <title> says it), point (a marker or a word, which keeps its size when the area is zoomed).
// data-below, data-left: the ticks of the axes, coarse ones and finer ones, each [place in the drawing,
// label].
std::string to_svg(const Plot& plot);

// What <defs> must hold wherever to_svg's elements stand.
std::string_view svg_definitions();

// A whole document with title, subtitle, note and style.
std::string to_svg_document(const Plot& plot);

// Text as content or attribute of an element of HTML or SVG.
std::string escaped_markup(const std::string& text);

}  // namespace shardmark
