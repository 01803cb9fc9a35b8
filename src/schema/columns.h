// Records turned into columns and back: one column for each entry of the field table.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "schema/stored.h"

namespace shardmark {

struct RecordColumn {
  std::string name;
  std::string unit;
  std::string description;
  std::variant<std::vector<std::string>, std::vector<int64_t>, std::vector<double>, std::vector<Flag>> values;
};

// One empty column for each entry of the field table, in its order.
std::vector<RecordColumn> make_columns();
void append_row(std::vector<RecordColumn>& columns, const Record& record);
// Returns the record of a row, without samples. A member keeps its default if its column is empty.
Record row(const std::vector<RecordColumn>& columns, size_t index);

}  // namespace shardmark
