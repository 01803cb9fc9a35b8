// The table of collectives: a row for each of the ten, and for the two operations that are made of them.
#include "specs/collectives.h"

#include <fmt/format.h>

#include "base/error.h"

namespace shardmark::specs {
namespace {

using enum Collective;
using enum Holds;
using enum CollectiveRow::Root;

constexpr Factor kOne = {"1", [](double) { return 1.0; }};
constexpr Factor kAllButOwn = {"(n-1)/n", [](double n) { return (n - 1) / n; }};
constexpr Factor kThereAndBack = {"2(n-1)/n", [](double n) { return 2 * (n - 1) / n; }};
// The payload is the root's input or output. n-1 parts of 1/n are sent, so that the mean over n ranks is
// (n-1)/n^2.
constexpr Factor kAllButOwnOfOne = {"(n-1)/n^2", [](double n) { return (n - 1) / (n * n); }};

}  // namespace

const std::array<CollectiveRow, kNumCollectives>& collectives() {
  // clang-format off
  static const std::array<CollectiveRow, kNumCollectives> rows = {{
      {all_reduce, "all_reduce", whole, whole, none, /*reduces=*/true, /*in_place=*/true, kThereAndBack, kThereAndBack, 2, /*has_tree=*/true,
       "every rank gets the reduction over all ranks",
       {reduce_scatter, all_gather, reduce, broadcast}, {{reduce_scatter, all_gather}, {reduce, broadcast}}},
      {reduce_scatter, "reduce_scatter", whole, shard, none, true, true, kAllButOwn, kAllButOwn, 1, false,
       "every rank gets its part of the reduction",
       {all_gather, all_reduce, all_to_all}, {{reduce, scatter}}},
      {all_gather, "all_gather", shard, whole, none, false, true, kAllButOwn, kAllButOwn, 1, false,
       "every rank gets the parts of all",
       {reduce_scatter, all_reduce, all_to_all}, {{gather, broadcast}}},
      {broadcast, "broadcast", whole, whole, sends, false, true, kAllButOwn, kOne, 1, true,
       "every rank gets what the root has",
       {reduce, all_gather, all_reduce, scatter}, {{scatter, all_gather}}},
      {reduce, "reduce", whole, whole, receives, true, true, kAllButOwn, kOne, 1, true,
       "the root gets the reduction over all ranks",
       {broadcast, reduce_scatter, all_reduce, gather}, {{all_reduce}}},
      {all_to_all, "all_to_all", chunk_per_rank, chunk_per_rank, none, false, false, kAllButOwn, kAllButOwn, 1, false,
       "every rank gets a part from every rank",
       {all_gather, reduce_scatter, all_reduce}, {}},
      {gather, "gather", shard, whole, receives, false, true, kAllButOwnOfOne, kAllButOwn, 1, false,
       "the root gets the parts of all",
       {scatter, all_gather, reduce_scatter, all_reduce}, {{all_gather}}},
      {scatter, "scatter", whole, shard, sends, false, true, kAllButOwnOfOne, kAllButOwn, 1, false,
       "every rank gets its part from the root",
       {gather, all_gather, reduce_scatter, all_reduce}, {{broadcast}}},
      {send_recv, "send_recv", pair, pair, none, false, false, kOne, kOne, 0, false,
       "every rank sends to the next, in a ring",
       {broadcast, scatter, all_gather, all_reduce}, {}},
      {all_to_all_v, "all_to_all_v", chunk_per_rank, chunk_per_rank, none, false, false, kAllButOwn, kAllButOwn, 1, false,
       "every rank gets a part from every rank, each of a length of its own",
       {all_to_all, all_gather, reduce_scatter}, {}, /*has_parts=*/true},
  }};
  // clang-format on
  return rows;
}

const CollectiveRow& collective(Collective what) {
  const CollectiveRow& row = collectives()[static_cast<size_t>(what)];
  ENSURE(row.what == what, "the table of collectives is in the order of its enumeration");
  return row;
}

const std::vector<CollectiveRow>& operations() {
  static const std::vector<CollectiveRow> rows = [] {
    std::vector<CollectiveRow> all(collectives().begin(), collectives().end());
    CollectiveRow row = collective(all_to_all_v);
    row.moves_tokens = true;
    row.name = "dispatch";
    row.description = "tokens go to the ranks that have their experts, once for each expert or rank";
    all.push_back(row);
    row.name = "combine";
    row.description = "what experts made of tokens goes back and is added up for each token, with weights";
    all.push_back(row);
    return all;
  }();
  return rows;
}

namespace {

template <class Rows>
const CollectiveRow* found_in(const Rows& rows, const std::string& name) {
  for (const CollectiveRow& row : rows)
    if (row.name == name) return &row;
  return nullptr;
}

template <class Rows>
std::vector<std::string> names_in(const Rows& rows) {
  std::vector<std::string> names;
  for (const CollectiveRow& row : rows) names.push_back(row.name);
  return names;
}

template <class Rows>
const CollectiveRow& known_in(const Rows& rows, const std::string& name) {
  if (const CollectiveRow* const found = found_in(rows, name); found != nullptr) return *found;
  throw UsageError(fmt::format("unknown collective '{}'; known: {}", name, fmt::join(names_in(rows), ", ")));
}

}  // namespace

const CollectiveRow* find_collective(const std::string& name) { return found_in(collectives(), name); }
const CollectiveRow& collective(const std::string& name) { return known_in(collectives(), name); }
std::vector<std::string> collective_names() { return names_in(collectives()); }

const CollectiveRow* find_operation(const std::string& name) { return found_in(operations(), name); }
const CollectiveRow& operation(const std::string& name) { return known_in(operations(), name); }
std::vector<std::string> operation_names() { return names_in(operations()); }

double ring_factor(Collective what, int64_t ranks) {
  return ranks == 1 ? 0 : collective(what).sent.of(static_cast<double>(ranks));
}

}  // namespace shardmark::specs
