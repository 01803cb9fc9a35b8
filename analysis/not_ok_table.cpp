// Points that gave no result, with the reason; those that share one are one row.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "analysis/cells.h"
#include "analysis/tables.h"

namespace shardmark {

Table not_ok_table(const std::vector<StudyData>& studies) {
  Table table{"not_ok",
              "Points without a result, and why",
              {"Points with the same outcome and reason are one row; the point named is the first of them."},
              {{"outcome", "", false}, {"points", ""}, {"first point", "", false}, {"reason", "", false}},
              {},
              0};
  std::map<std::tuple<Outcome, std::string>, std::pair<const Record*, int64_t>> groups;
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (record.outcome != Outcome::ok) {
        auto& [first, count] = groups[{record.outcome, record.reason}];
        if (count++ == 0) first = &record;
      }
  for (const auto& [key, group] : groups) {
    const auto& [outcome, reason] = key;
    table.rows.push_back({cells::words(std::string(to_text(outcome))), cells::count(group.second),
                          cells::words(to_text(group.first->point)), cells::words(reason.empty() ? "not recorded" : reason)});
  }
  return table;
}

}  // namespace shardmark
