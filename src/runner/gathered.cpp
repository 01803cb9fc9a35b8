// See gathered.h.
#include "runner/gathered.h"

#include <algorithm>

namespace shardmark {

std::vector<std::vector<double>> gather_rows(const HostGroup& group, const std::vector<double>& values) {
  const auto all = group.gather(values);
  std::vector<std::vector<double>> rows;
  const auto width = static_cast<std::ptrdiff_t>(values.size());
  for (auto row = all.begin(); row != all.end(); row += width) rows.emplace_back(row, row + width);
  return rows;
}

// Rows are ranks, so every row grows at its end.
void append_columns(Record& record, const std::string& name, const std::vector<std::vector<double>>& rows,
                    int64_t begin, int64_t count) {
  auto found = std::find_if(record.samples.begin(), record.samples.end(),
                            [&](const Series& series) { return series.name == name; });
  if (found == record.samples.end()) {
    record.samples.push_back({name, static_cast<int64_t>(rows.size()), 0, {}});
    found = record.samples.end() - 1;
  }
  std::vector<double> values;
  values.reserve(found->values.size() + rows.size() * static_cast<size_t>(count));
  for (int64_t row = 0; row < found->rows; ++row) {
    const auto old = found->values.begin() + row * found->columns;
    const auto added = rows[static_cast<size_t>(row)].begin() + begin;
    values.insert(values.end(), old, old + found->columns);
    values.insert(values.end(), added, added + count);
  }
  found->values = std::move(values);
  found->columns += count;
}

}  // namespace shardmark
