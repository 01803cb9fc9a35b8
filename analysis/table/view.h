// What people see of a table: columns in which all rows agree become a caption, and rows about different
// things (machines, models ...) become sections, so that what is left is narrow enough to read.
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace shardmark {

struct Section {
  std::string caption;  // what this section's rows share and others' do not; "" for the only section
  std::vector<Column> columns;
  std::vector<std::vector<const Cell*>> rows;  // the table's
  std::vector<bool> starts_group;              // by row: a blank line goes before it
};

struct View {
  std::string caption;  // what all rows share; "" for nothing
  std::vector<Section> sections;
};

View view_of(const Table& table);  // points into the table

}  // namespace shardmark
