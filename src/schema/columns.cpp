// Converts records to columns and back by visiting the field table once for each record.
#include "schema/columns.h"

#include "schema/fields.h"

namespace shardmark {
namespace {
template <class Member>
using Stored = std::decay_t<decltype(to_stored(std::declval<const Member&>()))>;
}  // namespace

std::vector<RecordColumn> make_columns() {
  std::vector<RecordColumn> columns;
  Record record;
  visit_fields(record, [&](const char* name, const char* unit, const char* description, const auto& member) {
    columns.push_back({name, unit, description, std::vector<Stored<std::decay_t<decltype(member)>>>()});
  });
  return columns;
}

void append_row(std::vector<RecordColumn>& columns, const Record& record) {
  auto column = columns.begin();
  visit_fields(record, [&](const char*, const char*, const char*, const auto& member) {
    std::get<std::vector<Stored<std::decay_t<decltype(member)>>>>((column++)->values)
        .push_back(to_stored(member));
  });
}

Record row(const std::vector<RecordColumn>& columns, size_t index) {
  Record record;
  auto column = columns.begin();
  visit_fields(record, [&](const char*, const char*, const char*, auto& member) {
    const auto& values = std::get<std::vector<Stored<std::decay_t<decltype(member)>>>>((column++)->values);
    if (!values.empty()) from_stored(values[index], member);
  });
  return record;
}

}  // namespace shardmark
