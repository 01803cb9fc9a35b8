// Measured steps beside what the study's own collectives say.
#include <fmt/format.h>

#include "analysis/frame/training_columns.h"
#include "analysis/predict/gap.h"
#include "analysis/table/cells.h"

namespace shardmark {
namespace {

auto milliseconds_of(double Gap::*seconds) {
  return [seconds](const Gap& gap) { return cells::milliseconds(gap.*seconds); };
}

Cell expectation_cell(const Gap& gap) {
  const std::string remark =
      gap.missing.empty() ? fmt::format("{}", fmt::join(gap.caveat, ", ")) : "none: " + gap.missing;
  return remark.empty() ? Cell{"", nullptr} : cells::words(remark);
}

ColumnsOf<Gap> measured_columns() {
  return {{{"step", "ms"},
           milliseconds_of(&Gap::step_s),
           "= compute + skew + communication: mean over ranks and over the middle half of the steps, sorted "
           "by duration."},
          {{"compute", "ms"}, milliseconds_of(&Gap::compute_s), "the step without exposed communication."},
          {{"skew", "ms"},
           milliseconds_of(&Gap::skew_s),
           "waiting time beyond that of the rank that waits least: waiting for slower ranks."},
          {{"communication", "ms"},
           milliseconds_of(&Gap::communication_s),
           "waiting time of the rank that waits least."}};
}

ColumnsOf<Gap> expected_columns() {
  return {
      {{"operations", "ms", true, false, "expected"},
       milliseconds_of(&Gap::operations_s),
       "all operations of the step one after the other, from this study's collectives at the same sizes."},
      {{"exposed", "ms", true, false, "expected"},
       milliseconds_of(&Gap::expected_exposed_s),
       "the part of that which computing does not hide, by simulation of the step with the point's own block "
       "times and the study's progress."},
      {{"alone", "ms", true, false, "measured"},
       [](const auto& gap) { return cells::milliseconds(gap.merged->measures.communication_only_s); },
       "the step's operations without its computing."},
      {{"unexplained", "ms"},
       [](const auto& gap) { return cells::milliseconds(gap.unexplained_s()); },
       "communication - expected exposed: below 0 where more is hidden than expected. Much above 0: look for "
       "other users of the links or the cores."},
      {{"of step", "%"}, [](const auto& gap) { return cells::percent(gap.unexplained_s() / gap.step_s); }},
      {{"expectation", "", false, true},
       expectation_cell,
       "what was not measured and comes from the cost model: other operations, sizes or ranks. A suite that "
       "measures the collectives of a step on the same ranks needs no cost model."},
      {{"warnings", "", false, true}, [](const auto& gap) { return warning_cell(*gap.merged); }}};
}

}  // namespace

Table gap_table(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors) {
  const TrainingColumns labels(points);
  return make_table("phases.gap", "Gap: what of the communication the collectives explain",
                    join(via(&Gap::merged, labels.columns()), measured_columns(), expected_columns()),
                    gaps(points, predictors));
}

}  // namespace shardmark
