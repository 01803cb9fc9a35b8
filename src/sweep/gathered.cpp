// See gathered.h.
#include "sweep/gathered.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark {

std::vector<std::vector<double>> gather_rows(const HostGroup& group, const std::vector<double>& values) {
  const auto all = group.gather(values);
  std::vector<std::vector<double>> rows;
  const auto width = static_cast<std::ptrdiff_t>(values.size());
  for (auto row = all.begin(); row != all.end(); row += width) rows.emplace_back(row, row + width);
  return rows;
}

Series columns_of(const std::string& name, const std::vector<std::vector<double>>& rows, int64_t begin,
                  int64_t count) {
  Series series{name, std::ssize(rows), count, {}};
  series.values.reserve(rows.size() * static_cast<size_t>(count));
  for (const auto& row : rows)
    series.values.insert(series.values.end(), row.begin() + begin, row.begin() + begin + count);
  return series;
}

void grow(Record& record, const std::vector<Series>& columns) {
  for (const Series& added : columns) {
    const auto found = std::find_if(record.samples.begin(), record.samples.end(),
                                    [&](const Series& series) { return series.name == added.name; });
    if (found == record.samples.end()) {
      record.samples.push_back(added);
      continue;
    }
    ENSURE(found->rows == added.rows, "a rank was lost between two windows");
    std::vector<double> values;  // rows are ranks, so every row grows at its end
    values.reserve(found->values.size() + added.values.size());
    for (int64_t row = 0; row < found->rows; ++row) {
      const auto old = found->values.begin() + row * found->columns;
      const auto more = added.values.begin() + row * added.columns;
      values.insert(values.end(), old, old + found->columns);
      values.insert(values.end(), more, more + added.columns);
    }
    found->values = std::move(values);
    found->columns += added.columns;
  }
}

}  // namespace shardmark
