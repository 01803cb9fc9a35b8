// Cells from values. What was not measured (a NaN, an empty text) prints "-" and is null for programs.
#pragma once

#include <string>

#include "analysis/table/table.h"

namespace shardmark::cells {

inline constexpr double kMebi = 0x1p20;

Cell words(const std::string& text);
Cell count(int64_t value);                  // "1,234"
Cell number(double value, int digits = 4);  // significant digits
Cell milliseconds(double seconds);
Cell mebibytes(double bytes);
Cell percent(double ratio, int decimals = 1);  // 0.971 -> 97.1
Cell difference(double measured,
                double predicted);  // (measured - predicted) / predicted in percent, with its sign
Cell yes_no(bool value);
Cell unless_default(bool is_default,
                    Cell cell);             // nothing where it is: a column of defaults stays out of the way
Cell unless_said(bool is_said, Cell cell);  // without text where another column says it to people

}  // namespace shardmark::cells
