// Plots inside a page: SVG without a renderer of its own on the reader's machine, with the values as titles
// that appear where one points. Title, subtitle and note are the page's to write.
#pragma once

#include <string>

#include "analysis/plots/plot.h"

namespace shardmark {

// An <svg> element that scales with the width it is given. Classes: plot, grid, axis, text, mark (whatever
// has a value; its <title> says it).
std::string to_svg(const Plot& plot);

// Text as content or attribute of an element of HTML or SVG.
std::string escaped_markup(const std::string& text);

}  // namespace shardmark
