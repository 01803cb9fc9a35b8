// Collectives in the columns of nccl-tests: one table per operation and rank count.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"
#include "laws/collectives.h"

namespace shardmark {
namespace {

// One message size, measured with two buffers, with one, or both.
struct Pair {
  const MergedPoint* any = nullptr;
  std::array<const MergedPoint*, 2> by_place = {};  // out-of-place, in-place
};

// Without a name for an operation that this program does not know.
laws::CollectiveRow row_of(const std::string& operation) {
  const laws::CollectiveRow* const found = laws::find_collective(operation);
  return found == nullptr ? laws::CollectiveRow{} : *found;
}

// In the order of the table of collectives; unknown ones come last.
size_t order_of(const std::string& operation) {
  const laws::CollectiveRow* const found = laws::find_collective(operation);
  return found == nullptr ? laws::kNumCollectives : static_cast<size_t>(found->what);
}

// As nccl-tests counts: of the parts of an operation that cuts its message, one.
Cell count_cell(const Point& point) {
  const CollectivePoint& c = point.collective;
  const auto element_bytes = known_bytes(c.dtype);
  if (!element_bytes) return cells::words("");
  return cells::count(c.bytes / *element_bytes / (row_of(c.operation).is_cut() ? point.ranks : 1));
}

std::vector<Cell> place_cells(const MergedPoint* merged) {
  if (merged == nullptr) return std::vector<Cell>(4, cells::words(""));
  const Measures& m = merged->measures;
  return {cells::number(m.step_s * 1e6), cells::number(m.algbw_gb_s, 3), cells::number(m.busbw_gb_s, 3),
          m.num_wrong < 0 ? cells::words("") : cells::count(m.num_wrong)};
}

std::vector<Cell> row(const Pair& pair) {
  const CollectivePoint& c = pair.any->point.collective;
  const auto marks = [&](size_t place) {
    return pair.by_place[place] == nullptr ? Cell{"", nullptr} : doubt_cell(*pair.by_place[place]);
  };
  return concat<Cell>({{cells::words(pair.any->machine), cells::words(pair.any->transport),
                        cells::count(c.bytes), count_cell(pair.any->point), cells::words(c.dtype),
                        cells::words(c.reduction), cells::count(row_of(c.operation).is_rooted() ? 0 : -1)},
                       place_cells(pair.by_place[0]),
                       concat<Cell>({place_cells(pair.by_place[1])}),
                       {marks(0), marks(1)}});
}

std::vector<Column> columns() {
  std::vector<Column> columns = {
      {"machine", "", false, true}, {"transport", "", false, true}, {"size", "B"}, {"count", "elements"},
      {"type", "", false},          {"redop", "", false},           {"root", ""}};
  for (const char* place : {"out-of-place", "in-place"}) {
    columns.push_back({"time", "us", true, true, place});
    columns.push_back({"algbw", "GB/s", true, true, place});
    columns.push_back({"busbw", "GB/s", true, true, place});
    columns.push_back({"#wrong", "", true, true, place});
  }
  for (const char* place : {"out-of-place", "in-place"}) columns.push_back({"marks", "", false, true, place});
  return columns;
}

std::vector<std::string> notes(const laws::CollectiveRow& row) {
  const std::string factor = row.name.empty() ? "the operation's factor" : row.busbw.formula;
  return {fmt::format(
      "Columns as in nccl-tests. size: the larger of a rank's send and receive side; count: its elements{}. "
      "time: median of the slowest rank's. algbw = size / time; busbw = algbw x {}; GB = 10^9 bytes. #wrong: "
      "elements that differed from the expected value.",
      row.is_cut() ? ", of one rank's part" : "", factor)};
}

Table empty_table(const std::string& operation, int64_t ranks) {
  return {fmt::format("collective_{}_{}", operation, ranks),
          fmt::format("Collective {} on {} rank{}", operation, ranks, ranks == 1 ? "" : "s"),
          notes(row_of(operation)),
          columns(),
          {},
          2,
          2};
}

}  // namespace

std::vector<Table> collective_tables(const MergedPoints& points) {
  using TableKey = std::tuple<size_t, std::string, int64_t>;  // operation, ranks
  using RowKey =
      std::tuple<std::string, std::string, std::string, std::string, int64_t, int64_t>;  // size last but seed
  std::map<TableKey, std::map<RowKey, Pair>> found;
  for (const MergedPoint& merged : points) {
    if (is_training(merged)) continue;
    const Point& p = merged.point;
    const CollectivePoint& c = p.collective;
    Pair& pair = found[{order_of(c.operation), c.operation, p.ranks}]
                      [{merged.machine, merged.transport, c.dtype, c.reduction, c.bytes, p.seed}];
    pair.any = pair.by_place[c.in_place ? 1 : 0] = &merged;
  }
  std::vector<Table> tables;
  for (const auto& [key, pairs] : found) {
    tables.push_back(empty_table(std::get<1>(key), std::get<2>(key)));
    for (const auto& [row_key, pair] : pairs) tables.back().rows.push_back(row(pair));
  }
  return tables;
}

}  // namespace shardmark
