// A training run as written in YAML: the keys of a suite's training block, each with one value, and those of
// the run itself. As strict as a suite: unknown, duplicate and mistyped keys are errors with their place.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "schema/axes.h"

namespace shardmark {

// Nothing where the file says nothing. Choices have every default filled in.
struct TrainingRun {
  std::string path, text;                 // as read
  std::map<std::string, AxisValue> axes;  // by key
  std::optional<Choice> schedule;
  std::optional<int64_t> steps, epochs, warmup, seed, log_every, eval_every, eval_batches;
  std::optional<int64_t> memory_limit_bytes;
};

// UsageError: "run.yaml:3:8: model: a training run has one model, not a list".
TrainingRun read_training_run(const std::string& path);
TrainingRun parse_training_run(const std::string& text, const std::string& path);

}  // namespace shardmark
