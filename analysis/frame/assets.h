// Template, style and script of the page (page/), the style of plots (render/plot.css) and published rates
// (reference/rates.csv), embedded when the program is built.
#pragma once

#include <string_view>

namespace shardmark {

std::string_view page_template();  // page.html; {{name}} is where a part goes
std::string_view page_style();     // page.css
std::string_view page_script();    // page.js
std::string_view plot_style();     // plot.css, of SVG files too
std::string_view rates_csv();      // reference/rates.csv

}  // namespace shardmark
