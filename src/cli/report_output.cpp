// See report_output.h.
#include "cli/report_output.h"

#include "analysis/overview/overview.h"
#include "analysis/quality/sustained.h"
#include "analysis/tables/tables.h"

namespace shardmark {

void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output) {
  std::vector<Table> tables = make_report(studies, inputs);
  if (!output.is_default()) return write_tables(std::move(tables), output);
  const MergedPoints points = merge_repeats(studies);
  write_first_screen(overview_of(studies, points, unfinished_runs(studies), scaling_series(points)), tables,
                     output);
}

}  // namespace shardmark
