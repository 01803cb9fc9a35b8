// Collectives in the columns of nccl-tests: one table per operation and rank count.
#include "specs/collectives.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/frame/known.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "specs/parts.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// One message size, measured with two buffers, with one, or both.
struct Pair {
  const MergedPoint* merged = nullptr;              // either
  std::array<const MergedPoint*, 2> by_place = {};  // out-of-place, in-place
  std::optional<KnownTokens> tokens = {};           // of dispatch and combine
};
constexpr std::array kPlaceNames = {"out-of-place", "in-place"};

// Without a name for an operation that this program does not know.
specs::CollectiveRow row_of(const std::string& operation) {
  const specs::CollectiveRow* const found = specs::find_operation(operation);
  return found == nullptr ? specs::CollectiveRow{} : *found;
}

// In the order of the table of collectives; unknown ones come last.
size_t order_of(const std::string& operation) {
  const specs::CollectiveRow* const found = specs::find_operation(operation);
  return found == nullptr ? specs::operations().size()
                          : static_cast<size_t>(found - specs::operations().data());
}

Cell count_cell(const Pair& pair) {
  const Point& point = pair.merged->point;
  const CollectivePoint& c = point.collective;
  const auto element_bytes = known_bytes(c.dtype);
  const specs::CollectiveRow& row = row_of(c.operation);
  if (!element_bytes || (row.moves_tokens && !pair.tokens)) return cells::words("");
  return cells::count(counted_elements(row, choice_or_name(c.parts), point.ranks, c.bytes / *element_bytes));
}

// algbw rates all rows of the busiest rank; the rate of a part is its share of them. Rows of its own node
// and of others are told apart only if all nodes hold equally many ranks.
Cell rate_cell(const Pair& pair, int64_t specs::TokenTraffic::*part) {
  const MergedPoint& merged = *pair.merged;
  if (!pair.tokens || merged.nodes < 2 || merged.ranks_per_node * merged.nodes != merged.point.ranks)
    return cells::words("");
  const specs::TokenTraffic& rows = pair.tokens->rows;
  return cells::number(
      merged.measures.algbw_gb_s * static_cast<double>(rows.*part) / static_cast<double>(rows.logical), 3);
}

ColumnsOf<Pair> token_columns() {
  return {{{.name = "within nodes", .unit = "GB/s", .is_optional = true},
           [](const Pair& pair) { return rate_cell(pair, &specs::TokenTraffic::within); },
           "what the busiest rank exchanges with the other ranks of its node / time."},
          {{.name = "between nodes", .unit = "GB/s", .is_optional = true},
           [](const Pair& pair) { return rate_cell(pair, &specs::TokenTraffic::between); },
           "what the busiest rank exchanges with other nodes / time."}};
}

enum Place : size_t { kOutOfPlace, kInPlace };

// The cell of a pair that was measured in this place, and an empty one otherwise.
template <class CellOfMerged>
auto in(Place place, CellOfMerged cell) {
  return [=](const Pair& pair) {
    const MergedPoint* merged = pair.by_place[place];
    return merged == nullptr ? cells::words("") : cell(*merged);
  };
}

std::string busbw_text(const specs::CollectiveRow& row) {
  const std::string of_parts = "what the busiest rank exchanges with others / time";
  if (row.name.empty()) return "algbw x the operation's factor; of all_to_all_v " + of_parts + ".";
  if (row.has_parts) return of_parts + ".";
  return fmt::format("algbw x {}.", row.busbw.formula);
}

ColumnsOf<Pair> place_columns(Place place, const specs::CollectiveRow& row) {
  const char* name = kPlaceNames[place];
  return {{{"time", "us", true, true, name},
           in(place, [](const auto& merged) { return cells::number(merged.measures.step_s * 1e6); }),
           "median of the slowest rank's."},
          {{.name = "estimate", .unit = "us", .group = name, .is_optional = true},
           in(place, [](const auto& merged) { return cells::number(merged.measures.estimated_s * 1e6); }),
           "what NCCL itself expects (ncclGroupSimulateEnd)."},
          {{"algbw", "GB/s", true, true, name},
           in(place, [](const auto& merged) { return cells::number(merged.measures.algbw_gb_s, 3); }),
           row.moves_tokens ? "what the busiest rank receives or sends, its own part included / time, which "
                              "others print as logical bandwidth; GB = 10^9 bytes."
                            : "size / time; GB = 10^9 bytes."},
          {{"busbw", "GB/s", true, true, name},
           in(place, [](const auto& merged) { return cells::number(merged.measures.busbw_gb_s, 3); }),
           busbw_text(row)},
          {{"#wrong", "", true, true, name},
           in(place,
              [](const auto& merged) {
                const int64_t wrong = merged.measures.num_wrong;
                return wrong < 0 ? cells::words("") : cells::count(wrong);
              }),
           "elements that differed from the expected value."}};
}

ColumnOf<Pair> mark_column(Place place) {
  return {{"warnings", "", false, true, kPlaceNames[place]}, [place](const Pair& pair) {
            return pair.by_place[place] == nullptr ? Cell{"", nullptr} : warning_cell(*pair.by_place[place]);
          }};
}

ColumnsOf<Pair> columns(const specs::CollectiveRow& row) {
  const auto collective = [](const Pair& pair) -> const auto& { return pair.merged->point.collective; };
  return join(
      ColumnsOf<Pair>{
          {{"machine", "", false, true, "", Starts::section},
           [](const auto& pair) { return cells::words(pair.merged->machine); }},
          {choice_column("transport", true, Starts::section),
           [](const auto& pair) { return transport_cell(pair.merged->transport); }},
          {{"nodes", "", true, true, "", Starts::section},
           [column = nodes_column()](const auto& pair) { return column.cell(*pair.merged); }},
          {choice_column("parts", true, Starts::section),
           [=](const auto& pair) {
             const std::string& parts = collective(pair).parts;
             Cell cell = cells::words(brief_text("parts", parts));
             cell.value = parts;
             return cells::unless_default(!row.has_parts, std::move(cell));
           },
           row.moves_tokens
               ? "the tokens that travel, as a mixture of experts with these numbers routes them."
               : "how what each rank sends is shared out; size is what a rank sends, algbw rates "
                 "the larger side of the busiest rank."},
          {{"size", "B"},
           [=](const auto& pair) { return cells::count(collective(pair).bytes); },
           row.moves_tokens ? "of the tokens of a rank, each counted once."
                            : "the larger of a rank's send and receive side. Columns as in nccl-tests."},
          {{.name = "tokens", .unit = "per rank", .is_optional = true},
           [](const auto& pair) {
             return pair.tokens ? cells::count(pair.tokens->tokens) : cells::words("");
           }},
          {{"count", "elements"},
           count_cell,
           row.is_cut() && !row.moves_tokens ? "elements of the size, of one rank's part."
                                             : "elements of the size."},
          {{"type", "", false}, [=](const auto& pair) { return cells::words(collective(pair).dtype); }},
          {{"redop", "", false}, [=](const auto& pair) { return cells::words(collective(pair).reduction); }},
          {{"root", ""},
           [is_rooted = row.is_rooted()](const auto&) { return cells::count(is_rooted ? 0 : -1); }}},
      place_columns(kOutOfPlace, row), place_columns(kInPlace, row), token_columns(),
      ColumnsOf<Pair>{mark_column(kOutOfPlace), mark_column(kInPlace)});
}

}  // namespace

std::vector<Table> collective_tables(const MergedPoints& points) {
  // A row of nccl-tests has both buffers of one size beside each other, so the two points that differ in
  // nothing but `in_place` share a row.
  using TableKey = std::tuple<size_t, std::string, int64_t>;  // operation, ranks
  // Size last, but for what is no column.
  using RowKey = std::tuple<Location, std::string, std::string, std::string, int64_t, std::string>;
  std::map<TableKey, std::map<RowKey, Pair>> found;
  for (const MergedPoint& merged : points) {
    if (!is_collective(merged)) continue;
    const Point& p = merged.point;
    const CollectivePoint& c = p.collective;
    Pair& pair = found[{order_of(c.operation), c.operation, p.ranks}][{
        location_of(merged), c.dtype, c.reduction, c.parts, c.bytes, series_key(merged, {"in_place"})}];
    pair.merged = pair.by_place[c.in_place ? 1 : 0] = &merged;
    pair.tokens = known_tokens(p, merged.ranks_per_node);
  }
  std::vector<Table> tables;
  for (const auto& [key, pairs] : found) {
    const auto& [order, operation, ranks] = key;
    std::vector<const Pair*> rows;
    for (const auto& [row_key, pair] : pairs) rows.push_back(&pair);
    tables.push_back(
        make_table(fmt::format("collectives.{}_{}", operation, ranks),
                   fmt::format("Collective {} on {} rank{}", operation, ranks, ranks == 1 ? "" : "s"),
                   columns(row_of(operation)), rows));
  }
  return tables;
}

}  // namespace shardmark
