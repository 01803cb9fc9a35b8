// The table of collectives: a row for each operation and number of ranks, with its message sizes as one
// range.
#include <algorithm>
#include <map>

#include "analysis/table/axis_columns.h"
#include "cli/plan_tables.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// An operation with all message sizes that share its other settings.
struct Sizes {
  const Point *smallest, *largest;
  int64_t count = 0;
};

std::vector<Sizes> sizes_of(const std::vector<const Point*>& points) {
  std::vector<Sizes> rows;
  std::map<std::string, size_t> row_of;
  for (const Point* point : points) {
    // Points that differ only in their size have the same id if the size is set to 0.
    Point kind = *point;
    kind.collective.bytes = 0;
    const auto [at, is_new] = row_of.emplace(point_id(kind), rows.size());
    if (is_new) rows.push_back({point, point});
    Sizes& sizes = rows[at->second];
    if (point->collective.bytes < sizes.smallest->collective.bytes) sizes.smallest = point;
    if (point->collective.bytes > sizes.largest->collective.bytes) sizes.largest = point;
    ++sizes.count;
  }
  return rows;
}

ColumnsOf<Sizes> operation_columns() {
  const auto words_of = [](std::string CollectivePoint::*member) {
    return [member](const Sizes& row) { return cells::words(row.smallest->collective.*member); };
  };
  const auto unless = [](const char* usual, std::string CollectivePoint::*member) {
    return [=](const Sizes& row) {
      const std::string& text = row.smallest->collective.*member;
      return cells::unless_default(text == usual, cells::words(text));
    };
  };
  return {
      {{"operation", "", false}, words_of(&CollectivePoint::operation)},
      {{"type", "", false, true}, words_of(&CollectivePoint::dtype)},
      {{"reduction", "", false}, words_of(&CollectivePoint::reduction)},
      {{"in place", "", false, true},
       [](const auto& row) { return cells::yes_no(row.smallest->collective.in_place); }},
      {{"parts", "", false, true}, unless("equal", &CollectivePoint::parts)},
      {{"beside", "", false, true}, unless("alone", &CollectivePoint::beside)},
      {{"ranks", ""}, [](const auto& row) { return cells::count(row.smallest->ranks); }},
      {{"sizes", ""}, [](const auto& row) { return cells::count(row.count); }},
      {{"smallest", "bytes"}, [](const auto& row) { return cells::count(row.smallest->collective.bytes); }},
      {{"largest", "bytes"}, [](const auto& row) { return cells::count(row.largest->collective.bytes); }},
      {{"traffic", "MiB per rank"},
       [](const auto& row) { return cells::mebibytes(expect(*row.largest).cost.traffic_bytes); },
       "what a rank sends for the largest message, mean over ranks: bytes x ring factor, of dispatch "
       "and combine the rows that travel."}};
}

// Settings that the row does not show: "NCCL_ALGO=Ring, beside matmul, parts zipf(exponent=1.5)".
std::string setting_of(const Point& point) {
  const CollectivePoint& c = point.collective;
  std::string setting = point.environment;
  const auto add = [&](const std::string& text) { setting += (setting.empty() ? "" : ", ") + text; };
  if (c.beside != "alone") add("beside " + brief_text("beside", c.beside));
  if (c.parts != "equal") add("parts " + brief_text("parts", c.parts));
  return setting;
}

}  // namespace

Table collectives_table(const std::vector<const Point*>& points) {
  return make_table("collectives", "Collective points",
                    join(via(&Sizes::smallest, measuring_columns()), operation_columns()), sizes_of(points));
}

OverviewTable collectives_answer(const std::vector<const Point*>& points) {
  std::vector<std::pair<std::string, std::vector<const Point*>>>
      settings;  // in the order of their first points
  for (const Point* point : points) {
    const std::string setting = setting_of(*point);
    auto at =
        std::find_if(settings.begin(), settings.end(), [&](const auto& one) { return one.first == setting; });
    if (at == settings.end()) at = settings.insert(at, {setting, {}});
    at->second.push_back(point);
  }
  OverviewTable answer{"Collectives", "collectives", {}, {}, {}};
  for (const auto& [setting, of_setting] : settings) {
    Table table =
        make_table(answer.key, answer.title,
                   without(operation_columns(), {"type", "reduction", "in place", "parts", "beside"}),
                   sizes_of(of_setting));
    answer.columns = std::move(table.columns);
    answer.groups.push_back({setting, std::move(table.rows)});
  }
  return answer;
}

}  // namespace shardmark
