// Training runs: where each began and ended, and how fast it went. Their curves are series of the study.
#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/tables.h"

namespace shardmark {
namespace {

std::string without_defaults_text(const Choice& choice, const OptionTable& table) {
  return to_text(without_defaults(choice, table));
}

std::vector<Cell> row(const Record& record) {
  const TrainingPoint& t = record.point.training;
  const Measures& m = record.measures;
  return {cells::words(record.started),
          cells::words(without_defaults_text(t.model, known_model_options(t.model))),
          cells::words(t.data.name),
          cells::words(without_defaults_text(t.strategy, known_options(t.strategy))),
          cells::words(t.precision),
          cells::count(record.point.ranks),
          cells::count(record.point.global_batch()),
          cells::count(m.first_step),
          cells::count(m.first_step + m.num_steps),
          cells::number(m.loss_first),
          cells::number(m.loss_last),
          cells::number(m.held_out_loss),
          cells::percent(m.accuracy),
          cells::number(t.precision == "fp16" ? static_cast<double>(m.num_skipped) : Measures::kNone),
          cells::number(m.samples_per_s),
          cells::number(m.tokens_per_s),
          cells::mebibytes(m.peak_bytes)};
}

}  // namespace

Table runs_table(const std::vector<StudyData>& studies) {
  Table table{"runs",
              "Training runs",
              {"loss: mean over ranks of the first and the last step of this launch. held out: on the "
               "samples kept back, "
               "after the last step. Curves are in the study: series loss, learning_rate, gradient_norm, "
               "held_out_loss. skipped: steps of the whole run whose gradients were not finite in fp16."},
              {{"started", "", false, true},
               {"model", "", false, true},
               {"data", "", false, true},
               {"strategy", "", false},
               {"precision", "", false, true},
               {"ranks", ""},
               {"global batch", "samples"},
               {"from step", ""},
               {"to step", ""},
               {"first", "", true, false, "loss"},
               {"last", "", true, false, "loss"},
               {"held out", "", true, true, "loss"},
               {"accuracy", "%", true, true},
               {"skipped", "steps", true, true},
               {"samples/s", ""},
               {"tokens/s", "", true, true},
               {"peak", "MiB"}},
              {},
              0};
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (record.point.workload == "train" && record.outcome == Outcome::ok)
        table.rows.push_back(row(record));
  return table;
}

}  // namespace shardmark
