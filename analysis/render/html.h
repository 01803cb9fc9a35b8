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
// folded away. What all rows share stands above; what rows of a section share (their model, their machine) is
// a row above them, so that it does not take the width of a column.
std::string table(const Table& table);

// A row that is one cell: what the rows below are about ("setting"), or how many are left out ("more").
std::string wide_row(const std::string& words, const char* kind, size_t num_columns);
// A table of these rows in a box that scrolls where it is wider than the page; its caption is for readers who
// do not see the heading above it.
std::string scrolled(const std::string& caption, const std::string& markup,
                     const std::string& table_class = "");

}  // namespace shardmark::html
