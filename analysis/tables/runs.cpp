// Training runs: where each began and ended, and how fast it went. Their curves are series of the study.
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

ColumnsOf<Record> run_columns() {
  return {
      {{"started", "", false, true}, [](const auto& run) { return cells::words(run.started); }},
      {choice_column("model", true),
       [](const auto& run) { return choice_cell("model", run.point.training.model); }},
      {choice_column("data", true),
       [](const auto& run) { return choice_cell("data", run.point.training.data); }},
      {choice_column("strategy"), [](const auto& run) { return strategy_cell(run.point.training); }},
      {{"precision", "", false, true},
       [](const auto& run) { return cells::words(run.point.training.precision); }},
      {{"ranks", ""}, [](const auto& run) { return cells::count(run.point.ranks); }},
      {{"global batch", "samples"}, [](const auto& run) { return cells::count(run.point.global_batch()); }}};
}

Cell skipped_cell(const Record& run) {
  const bool can_skip = run.point.training.precision == "fp16";
  return cells::number(can_skip ? static_cast<double>(run.measures.num_skipped) : Measures::kNone);
}

auto number_cell(double Measures::*measure) {
  return [measure](const Record& run) { return cells::number(run.measures.*measure); };
}

constexpr const char* kLoss =
    "mean over ranks at the first or the last step of this launch. Curves are in the study: series loss, "
    "learning_rate, gradient_norm, held_out_loss.";

ColumnsOf<Record> result_columns() {
  return {
      {{"from step", ""}, [](const auto& run) { return cells::count(run.measures.first_step); }},
      {{"to step", ""},
       [](const auto& run) { return cells::count(run.measures.first_step + run.measures.num_steps); }},
      {{"first", "", true, false, "loss"}, number_cell(&Measures::loss_first), kLoss},
      {{"last", "", true, false, "loss"}, number_cell(&Measures::loss_last), kLoss},
      {{"held out", "", true, true, "loss"},
       number_cell(&Measures::held_out_loss),
       "on the held-out samples, after the last step."},
      {{"accuracy", "%", true, true}, [](const auto& run) { return cells::percent(run.measures.accuracy); }},
      {{"skipped", "steps", true, true},
       skipped_cell,
       "of the whole run, whose gradients were not finite in fp16."},
      {{"samples/s", ""}, number_cell(&Measures::samples_per_s)},
      {{"tokens/s", "", true, true}, number_cell(&Measures::tokens_per_s)},
      {{"peak", "MiB"}, [](const auto& run) { return cells::mebibytes(run.measures.peak_bytes); }}};
}

}  // namespace

Table runs_table(const std::vector<StudyData>& studies) {
  std::vector<const Record*> runs;
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (record.point.workload == "train" && record.outcome == Outcome::ok) runs.push_back(&record);
  return make_table("runs", "Training runs", join(run_columns(), result_columns()), runs);
}

}  // namespace shardmark
