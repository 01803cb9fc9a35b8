// Training runs: where each began and ended, and how fast it went. Their curves are series of the study.
#include <algorithm>
#include <cmath>

#include "analysis/frame/peaks.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/tables/tables.h"
#include "base/stats.h"

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
      {{"products", "", false, true},
       [](const auto& run) {
         const Choice& products = run.point.training.products;
         return products.name == "compute" ? cells::words("") : choice_cell("products", products);
       }},
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

// The steps that the study holds. A run whose ranks were killed has no results, but its losses were written
// as it went on.
int64_t num_steps(const Record& run) {
  const Series* loss = run.series("loss");
  return std::max(run.measures.num_steps, loss == nullptr ? 0 : loss->columns);
}

Cell outcome_cell(const Record& run) {
  if (run.outcome != Outcome::ok) return cells::words(std::string(to_text(run.outcome)));
  return cells::words(run.measures.num_steps < num_steps(run) ? "unfinished" : "");
}

// A value at the first or the last step of the loss curve.
auto loss_cell(double Measures::*measure, bool is_last) {
  return [=](const Record& run) {
    const Series* loss = run.series("loss");
    const double measured = run.measures.*measure;
    if (!std::isnan(measured) || loss == nullptr || loss->columns == 0) return cells::number(measured);
    return cells::number(loss->at(0, is_last ? loss->columns - 1 : 0));
  };
}

// The median over the columns of a series, which are checkpoints or launches.
auto median_cell(std::string_view series) {
  return [series](const Record& run) {
    const Series* found = run.series(series);
    return cells::number(found == nullptr || found->values.empty() ? Measures::kNone : median(found->values));
  };
}

constexpr const char* kLoss =
    "mean over ranks at the first or the last step that the study holds. Curves are in the study: series "
    "loss, learning_rate, gradient_norm, held_out_loss.";

ColumnsOf<Record> result_columns() {
  return {
      {{"outcome", "", false, true},
       outcome_cell,
       "empty where all is well; unfinished: it goes on, or its ranks were killed."},
      {{"from step", ""}, [](const auto& run) { return cells::count(run.measures.first_step); }},
      {{"to step", ""},
       [](const auto& run) { return cells::count(run.measures.first_step + num_steps(run)); }},
      {{"first", "", true, false, "loss"}, loss_cell(&Measures::loss_first, false), kLoss},
      {{"last", "", true, false, "loss"}, loss_cell(&Measures::loss_last, true), kLoss},
      {{"held out", "", true, true, "loss"},
       number_cell(&Measures::held_out_loss),
       "on the held-out samples, after the last step."},
      {{"accuracy", "%", true, true}, [](const auto& run) { return cells::percent(run.measures.accuracy); }},
      {{"skipped", "steps", true, true},
       skipped_cell,
       "of the whole run, whose gradients were not finite in fp16."},
      {{"peak", "MiB"}, [](const auto& run) { return cells::mebibytes(run.measures.peak_bytes); }},
      {{"write", "s", true, true, "checkpoint"},
       median_cell("checkpoint_write"),
       "median over the checkpoints, from the stop for one until it is on the disk."},
      {{"read", "s", true, true, "checkpoint"},
       median_cell("checkpoint_read"),
       "of runs that went on: finding, checking and loading one."}};
}

}  // namespace

Table runs_table(const std::vector<StudyData>& studies) {
  std::vector<const Record*> runs;
  const auto add = [&](const Record& record) {
    if (record.point.workload != "train") return;
    if (record.outcome == Outcome::ok || num_steps(record) > 0) runs.push_back(&record);
  };
  for (const StudyData& study : studies) {
    for (const Record& record : study.records) add(record);
    if (study.under_way) add(*study.under_way);
  }
  return make_table("runs", "Training runs",
                    join(run_columns(), result_columns(),
                         through<Record>(
                             [](const Record& run) {
                               Throughput speed = throughput_of(run.point, run.measures);
                               speed.of_matmul = matmul_share(run.point, run.measures);
                               return speed;
                             },
                             throughput_columns())),
                    runs);
}

}  // namespace shardmark
