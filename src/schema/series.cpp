// Joins series that were stored in pieces of columns. Rows are ranks, so every row of the result consists of
// a part of each piece.
#include "schema/series.h"

#include <algorithm>
#include <map>
#include <set>

#include "schema/fields.h"

namespace shardmark {
namespace {

using Parts = std::map<std::string, std::vector<const Series*>>;  // by name

bool fits(const std::vector<Series>& piece, const Parts& before) {
  std::set<std::string> seen;
  return std::all_of(piece.begin(), piece.end(), [&](const Series& series) {
    const bool is_known = std::any_of(kSeries.begin(), kSeries.end(),
                                      [&](const SeriesInfo& info) { return info.name == series.name; });
    const auto parts = before.find(series.name);
    return is_known && seen.insert(series.name).second &&
           (parts == before.end() || parts->second.front()->rows == series.rows);
  });
}

Series whole(const std::string& name, const std::vector<const Series*>& parts) {
  Series series{name, parts.front()->rows, 0, {}};
  for (const Series* part : parts) series.columns += part->columns;
  series.values.reserve(static_cast<size_t>(series.rows * series.columns));
  for (int64_t row = 0; row < series.rows; ++row)
    for (const Series* part : parts) {
      const auto begin = part->values.begin() + row * part->columns;
      series.values.insert(series.values.end(), begin, begin + part->columns);
    }
  return series;
}

}  // namespace

std::vector<Series> join_columns(const std::vector<std::vector<Series>>& pieces) {
  Parts parts;
  for (const auto& piece : pieces) {
    if (!fits(piece, parts)) continue;
    for (const Series& series : piece) parts[series.name].push_back(&series);
  }
  std::vector<Series> series;
  series.reserve(parts.size());
  for (const auto& [name, of_pieces] : parts) series.push_back(whole(name, of_pieces));
  return series;
}

}  // namespace shardmark
