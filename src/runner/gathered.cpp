// See gathered.h.
#include "runner/gathered.h"

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
  ENSURE(append_columns(record.samples, columns), "a rank was lost between two windows");
}

}  // namespace shardmark
