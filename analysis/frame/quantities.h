// What can be said of a measured point in numbers, by name: every measure of a study (kMeasures in
// schema/fields.h), and what is derived from measures. Tables and plots ask for a quantity by its name, and
// take its heading, unit and definition from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/frame/training_columns.h"

namespace shardmark {

struct Quantity {
  enum class Show {
    number,
    count,
    milliseconds,  // of seconds
    mebibytes,     // of bytes
    megabytes,     // of bytes, 10^6
    billions,
    percent,     // of a ratio
    difference,  // from what was predicted, in percent with its sign
  };
  std::string_view name;
  std::string heading, unit;  // of a column, unless a table says otherwise
  Show show;
  std::function<double(const MergedPoint&)> of;                   // NaN where it was not measured
  std::string definition;                                         // "" where the heading says it all
  std::function<double(const MergedPoint&)> predicted = nullptr;  // of a difference
};

// Fails where there is none of this name.
const Quantity& quantity(std::string_view name);
// Seconds, bytes and ratios as a number of the quantity's unit.
double in_unit(const Quantity& quantity, double value);
Cell cell_of(const Quantity& quantity, const MergedPoint& merged);

// A quantity as a column of a table.
struct Shown {
  std::string_view name;
  std::string_view group = {};    // the heading over it and its neighbours
  std::string_view heading = {};  // below that; none: the quantity's own
  bool fold = false;              // for people only: left out where it is the same in all rows, or nothing
};

Column column_of(const Shown& shown);  // with the definition

template <class Row = MergedPoint>
ColumnsOf<Row> columns_of(const std::vector<Shown>& all) {
  ColumnsOf<Row> columns;
  for (const Shown& shown : all) {
    Column head = column_of(shown);
    std::string definition = std::exchange(head.definition, "");
    columns.push_back({std::move(head),
                       [&of = quantity(shown.name)](const Row& row) { return cell_of(of, point_of(row)); },
                       std::move(definition)});
  }
  return columns;
}

}  // namespace shardmark
