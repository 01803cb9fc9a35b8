// HTML elements. Content is markup, texts are escaped: html::text("a < b") -> "a &lt; b".
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace shardmark::html {

std::string text(const std::string& text);
// <name attributes>content</name>
std::string element(const std::string& name, const std::string& content, const std::string& attributes = "");
std::string list(const std::vector<std::string>& items);  // of texts

// The table's rows, which the page's script sorts and filters, and below them its notes, and its explanations
// folded away. What all rows share stands above.
std::string table(const Table& table);

}  // namespace shardmark::html
