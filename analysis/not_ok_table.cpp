// Points that gave no result, with the reason; those that share one are one row.
#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/tables.h"
#include "base/units.h"

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
      strategies.insert(to_text(without_defaults(t.strategy, known_options(t.strategy))));
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

}  // namespace

Table not_ok_table(const std::vector<StudyData>& studies) {
  Table table{"not_ok",
              "Points without a result, and why",
              {"Points with the same outcome and reason are one row. batch: per rank."},
              {{"outcome", "", false},
               {"points", ""},
               {"model, operation", "", false},
               {"strategy", "", false},
               {"ranks", "", false},
               {"batch or size", "", false},
               {"reason", "", false}},
              {},
              0};
  std::map<std::tuple<Outcome, std::string>, Group> groups;
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (record.outcome != Outcome::ok)
        groups[{record.outcome, record.reason + (record.attempts > 1 ? "; in the second attempt" : "")}].add(
            record.point);

  const auto name = [](const std::string& text) { return text; };
  const auto number = [](int64_t value) { return std::to_string(value); };
  const auto bytes = [](int64_t value) { return format_bytes(static_cast<double>(value)); };
  for (const auto& [key, group] : groups) {
    const auto& [outcome, reason] = key;
    table.rows.push_back(
        {cells::words(std::string(to_text(outcome))), cells::count(group.num_points),
         listed(group.work, name), listed(group.strategies, name), listed(group.ranks, number),
         group.message_bytes.empty() ? listed(group.batch_sizes, number) : listed(group.message_bytes, bytes),
         cells::words(reason.empty() ? "not recorded" : reason)});
  }
  return table;
}

}  // namespace shardmark
