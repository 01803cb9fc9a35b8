// Points that gave no result, with the reason; those that share one are one row.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/tables/tables.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// What the points of one row are, as sets.
struct Group {
  int64_t num_points = 0;
  std::set<std::string> work, strategies;
  std::set<int64_t> ranks, batch_sizes, message_bytes;

  void add(const Point& point) {
    const TrainingPoint& t = point.training;
    ++num_points;
    ranks.insert(point.ranks);
    if (point.workload != "collective") {
      work.insert(t.model.name);
      strategies.insert(strategy_text(t));
      batch_sizes.insert(t.batch_size);
    } else {
      work.insert(point.collective.operation);
      message_bytes.insert(point.collective.bytes);
    }
  }
};

// "1, 2, 4", or "8 ... 1024" for a long list.
template <class Set, class Text>
Cell listed(const Set& values, Text text) {
  std::string list;
  if (values.size() > 6) return cells::words(text(*values.begin()) + " ... " + text(*values.rbegin()));
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return cells::words(list);
}

std::string number_text(int64_t value) { return std::to_string(value); }

// "70.3 MiB wanted" as "64.0 MiB to 128 MiB wanted": points that lacked different amounts share a row.
std::string with_rounded_amount(const std::string& reason) {
  static const std::regex amount("([0-9.]+) (B|KiB|MiB|GiB|TiB) wanted");
  std::smatch found;
  if (!std::regex_search(reason, found, amount)) return reason;
  constexpr std::string_view kUnits = "BKMGT";
  const double bytes =
      std::stod(found[1].str()) * std::exp2(10.0 * static_cast<double>(kUnits.find(found[2].str()[0])));
  const double low = std::exp2(std::floor(std::log2(bytes)));
  return fmt::format("{}{} to {} wanted{}", found.prefix().str(), format_bytes(low), format_bytes(2 * low),
                     found.suffix().str());
}

using Groups = std::map<std::tuple<Outcome, std::string>, Group>;  // by outcome and reason

Groups groups_of(const std::vector<StudyData>& studies) {
  Groups groups;
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (record.outcome != Outcome::ok)
        groups[{record.outcome,
                with_rounded_amount(record.reason) + (record.attempts > 1 ? "; in the second attempt" : "")}]
            .add(record.point);
  return groups;
}

Cell sizes_cell(const Group& group) {
  return group.message_bytes.empty() ? listed(group.batch_sizes, number_text)
                                     : listed(group.message_bytes, [](int64_t bytes) {
                                         return format_bytes(static_cast<double>(bytes));
                                       });
}

}  // namespace

Table not_ok_table(const std::vector<StudyData>& studies) {
  using Row = Groups::value_type;
  const auto name = [](const std::string& text) { return text; };
  const ColumnsOf<Row> columns = {
      {{"outcome", "", false},
       [](const Row& row) { return cells::words(std::string(to_text(std::get<Outcome>(row.first)))); }},
      {{"points", ""},
       [](const Row& row) { return cells::count(row.second.num_points); },
       "with the same outcome and reason."},
      {{"model, operation", "", false}, [=](const Row& row) { return listed(row.second.work, name); }},
      {{"strategy", "", false}, [=](const Row& row) { return listed(row.second.strategies, name); }},
      {{"ranks", "", false}, [](const Row& row) { return listed(row.second.ranks, number_text); }},
      {{"batch or size", "", false},
       [](const Row& row) { return sizes_cell(row.second); },
       "batch per rank, or bytes of the message."},
      {{"reason", "", false}, [](const Row& row) {
         const auto& reason = std::get<std::string>(row.first);
         return cells::words(reason.empty() ? "not recorded" : reason);
       }}};
  return make_table("not_ok", "Points without a result, and why", columns, groups_of(studies));
}

}  // namespace shardmark
