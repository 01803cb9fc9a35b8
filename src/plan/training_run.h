// The settings of a training run, as flags of shardmark train, its --set and its YAML file give them. One
// table, kKnobs, makes all three. The file may also have the keys of a suite's training block, each with one
// value, and it is as strict as a suite: unknown, duplicate and mistyped keys are errors with their place.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/axes.h"

namespace shardmark {

struct TrainingRun {
  std::string file, file_text;            // empty if there is no file
  std::map<std::string, AxisValue> axes;  // from the file, by key; choices have all defaults
  // The place in the file of each key that no flag has replaced: "run.yaml:3:8: ".
  std::map<std::string, std::string> places;
  std::optional<int64_t> batch_size, global_batch;  // one of them, or neither
  std::optional<int64_t> steps, epochs;             // one of them, or neither: 100 steps
  int64_t seed = 1;
  bool deterministic = false;
  std::map<std::string, double> of_optimizer;  // optimizer options that have flags
  std::string schedule = "constant";           // a choice as text
  int64_t warmup = 0;                          // steps
  bool scale_lr = false;
  int64_t log_every = 1;
  int64_t eval_every = 0;  // 0: after the last step only
  // Most batches that each rank evaluates. 0: no evaluation; no value: all.
  std::optional<int64_t> eval_batches;
  std::string output;
  std::string checkpoint;        // directory; empty: none
  int64_t checkpoint_every = 0;  // 0: at the end only
  bool resume = false;
  std::string weights, save_weights, trace;  // empty: none
  bool overwrite = false;
  std::optional<int64_t> memory_limit;  // bytes; no value: the device's own limit
};

// One setting of a run: a flag and a key of the file, such as "--eval-every" and eval_every.
struct Knob {
  const char* flag;   // nullptr: none, the key is given by the file or --set
  const char* group;  // heading in the help
  const char* help;
  std::variant<bool TrainingRun::*, int64_t TrainingRun::*, std::optional<int64_t> TrainingRun::*,
               std::string TrainingRun::*, std::map<std::string, double> TrainingRun::*>
      member;
  std::variant<Whole, Real, Bytes> accepted = values::kSteps;  // the range of a number
  const char* key = nullptr;                                   // nullptr: there is only the flag
};
extern const std::vector<Knob> kKnobs;

// Calls visit(member, kind of value), each with its own type.
template <class Visit>
auto visit_knob(const Knob& knob, TrainingRun& run, Visit&& visit) {
  return std::visit([&](auto member, const auto& kind) { return visit(run.*member, kind); }, knob.member,
                    knob.accepted);
}

// Adds the place in the file to an error message about values that do not go together. The place is that of
// the first key that the message names, by its own name or by its flag. Flags in the text are replaced by
// their keys.
std::string located(const TrainingRun& run, std::string text);

// Takes values that were typed as --set KEY=VALUE, with the keys of the file: knobs go into the run, and the
// axes are returned. Throws UsageError.
std::map<std::string, AxisValue> take_typed(const std::vector<std::string>& texts, TrainingRun& run);

// Throw UsageError with the place: "run.yaml:3:8: model: a training run has one model, not a list".
TrainingRun read_training_run(const std::string& path);
TrainingRun parse_training_run(const std::string& text, const std::string& path);

}  // namespace shardmark
