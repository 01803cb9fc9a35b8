// The tables that are built into the program (assets.h): CSV whose cells hold no comma and no quote.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardmark {

// The cells of each line but the first, which is the heading; empty cells at the end of a line are left out.
std::vector<std::vector<std::string>> csv_rows(std::string_view csv);

}  // namespace shardmark
