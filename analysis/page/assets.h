// Template, style and script of the page: the files beside this one, embedded when the program is built.
#pragma once

#include <string_view>

namespace shardmark {

extern const std::string_view kPageTemplate;  // page.html; {{name}} is where a part goes
extern const std::string_view kPageStyle;     // page.css
extern const std::string_view kPageScript;    // page.js

}  // namespace shardmark
