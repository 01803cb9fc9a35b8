// Measured steps beside what the study's own collectives say.
#include <fmt/format.h>

#include "analysis/cells.h"
#include "analysis/predict/gap.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

std::vector<Column> columns() {
  return concat<Column>({TrainingColumns::columns(),
                         {{"step", "ms"}, {"compute", "ms"}, {"skew", "ms"}, {"communication", "ms"}},
                         {{"operations", "ms", true, false, "expected"},
                          {"exposed", "ms", true, false, "expected"},
                          {"alone", "ms", true, false, "measured"},
                          {"unexplained", "ms"},
                          {"of step", "%"}},
                         {{"expectation", "", false, true}, {"marks", "", false, true}}});
}

std::vector<Cell> row(const TrainingColumns& labels, const Gap& gap) {
  const std::string remark =
      gap.missing.empty() ? fmt::format("{}", fmt::join(gap.caveat, ", ")) : "none: " + gap.missing;
  return concat<Cell>(
      {labels.cells(*gap.merged),
       {cells::milliseconds(gap.step_s), cells::milliseconds(gap.compute_s), cells::milliseconds(gap.skew_s),
        cells::milliseconds(gap.communication_s)},
       {cells::milliseconds(gap.operations_s), cells::milliseconds(gap.expected_exposed_s),
        cells::milliseconds(gap.merged->measures.communication_only_s),
        cells::milliseconds(gap.unexplained_s()), cells::percent(gap.unexplained_s() / gap.step_s)},
       {remark.empty() ? Cell{"", nullptr} : cells::words(remark), doubt_cell(*gap.merged)}});
}

}  // namespace

Table gap_table(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors) {
  Table table{
      "gap",
      "Where a step goes, and what of it the collectives explain",
      {"step = compute + skew + communication: mean over ranks, of the middle half of the steps. compute: "
       "the step without exposed communication; skew: waiting beyond that of the rank that waits least, "
       "which is "
       "waiting for slower ranks; communication: what that rank waits.",
       "expected: from this study's own collectives at the sizes of the step's operations; operations: all "
       "of them one after the other; exposed: what of that computing does not hide, by simulation of the "
       "step. "
       "measured alone: the step's operations without its computing.",
       "unexplained = communication - expected exposed: below 0 where more is hidden than expected. Much "
       "above 0: look for what shares the links or the cores.",
       "expectation: what was not measured and is told by the law: other operations, sizes or ranks. A suite "
       "with the collectives of a step on the ranks of its points leaves nothing to be told."},
      columns(),
      {},
      TrainingColumns::kNumGroupColumns,
      TrainingColumns::kNumSectionColumns};
  const std::vector<Gap> all = gaps(points, predictors);
  if (all.empty()) return table;
  const TrainingColumns labels(points);
  for (const Gap& gap : all) table.rows.push_back(row(labels, gap));
  return table;
}

}  // namespace shardmark
