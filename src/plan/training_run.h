// A training run: what flags of shardmark train and its YAML file set, with one row for each knob, from which
// both are made. The file has the keys of a suite's training block, too, each with one value, and is as
// strict as a suite: unknown, duplicate and mistyped keys are errors with their place.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "schema/axes.h"

namespace shardmark {

struct TrainingRun {
  std::string file, file_text;            // where it is from a file
  std::map<std::string, AxisValue> axes;  // of the file, by key; choices have every default filled in
  // Where the file says what no flag has replaced, by key: "run.yaml:3:8: "
  std::map<std::string, std::string> places;
  std::optional<int64_t> batch_size, global_batch;  // one of them, or neither
  std::optional<int64_t> steps, epochs;             // one of them, or neither: 100 steps
  int64_t seed = 1;
  bool deterministic = false;
  std::map<std::string, double> of_optimizer;  // its options that have flags of their own
  std::string schedule = "constant";           // a choice as text
  int64_t warmup = 0;                          // steps
  bool scale_lr = false;
  int64_t log_every = 1;
  int64_t eval_every = 0;               // 0: after the last step only
  std::optional<int64_t> eval_batches;  // of each rank, at most; 0: no evaluation; nothing: all
  std::string output;
  std::string checkpoint;        // directory; empty: none
  int64_t checkpoint_every = 0;  // 0: at the end only
  bool resume = false;
  std::string weights, save_weights, trace;  // empty: none
  bool overwrite = false;
  std::optional<int64_t> memory_limit;  // bytes; nothing: of the device
};

// A flag, and a key of the file: "--eval-every" and eval_every.
struct Knob {
  const char* flag;
  const char* group;  // of the help
  const char* help;
  std::variant<bool TrainingRun::*, int64_t TrainingRun::*, std::optional<int64_t> TrainingRun::*,
               std::string TrainingRun::*, std::map<std::string, double> TrainingRun::*>
      member;
  std::variant<Whole, Real, Bytes> accepted = values::kSteps;  // of a number
  enum { kFlagAlone, kInFile } place = kFlagAlone;

  std::string key() const;
};
extern const std::vector<Knob> kKnobs;

// visit(member, kind of value), each with its own type.
template <class Visit>
auto visit_knob(const Knob& knob, TrainingRun& run, Visit&& visit) {
  return std::visit([&](auto member, const auto& kind) { return visit(run.*member, kind); }, knob.member,
                    knob.accepted);
}

// What is wrong with values that do not go together, as it concerns this run: with the place of the first key
// of the file that the text names, by its own name or by that of its flag, which becomes the key's.
std::string located(const TrainingRun& run, std::string text);

// UsageError: "run.yaml:3:8: model: a training run has one model, not a list".
TrainingRun read_training_run(const std::string& path);
TrainingRun parse_training_run(const std::string& text, const std::string& path);

}  // namespace shardmark
