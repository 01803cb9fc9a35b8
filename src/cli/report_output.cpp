// See report_output.h.
#include "cli/report_output.h"

#include <algorithm>

#include "analysis/overview/overview.h"
#include "analysis/reference/tables.h"
#include "analysis/tables/names.h"

namespace shardmark {

void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output) {
  const ReportData data(studies, inputs.references);
  ReportInputs asked = inputs;
  asked.bmwg.is_named = std::any_of(output.only.begin(), output.only.end(),
                                    [](const std::string& word) { return word.starts_with("bmwg"); });
  const auto is_wanted = [&](const Table& table) {
    return output.only.empty()
               ? !output.is_default()
               : std::any_of(output.only.begin(), output.only.end(),
                             [&](const std::string& word) { return is_called(table.key, word); });
  };
  std::vector<Table> tables;  // of those that are not wanted the key alone
  visit_tables(data, asked, [&](Table&& table) {
    if (!is_wanted(table)) table = Table{table.key, "", {}, {}, {}};
    tables.push_back(std::move(table));
  });
  if (!output.is_default()) return write_tables(std::move(tables), output);
  Overview overview = overview_of(studies, data.points, data.unfinished, data.scaling);
  overview.standing = standing_of(data.points, inputs.references, data.matches.points, data.rates);
  write_first_screen(std::move(overview), tables, output);
}

}  // namespace shardmark
