// Reads a run through the reader of training blocks, and takes the one value of each axis.
#include "plan/training_run.h"

#include <algorithm>

#include "plan/axes.h"
#include "plan/choice_axis.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

std::vector<std::string> accepted_keys() {
  std::vector<std::string> keys = training_keys();
  std::erase_if(keys, [](const std::string& key) { return key == "ranks" || key == "sampling"; });
  keys.insert(keys.end(), {"schedule", "warmup", "steps", "epochs", "seed", "log_every", "eval_every",
                           "eval_batches", "memory_limit", "name", "description"});
  return keys;
}

// values: of the axis that was read from this key; there is no need of them where the key is absent.
template <class Value>
std::optional<Value> single(const YamlMap& map, const std::string& key, const std::vector<Value>& values) {
  const YamlNode* found = map.find(key);
  if (found == nullptr) return {};
  std::string words = key;
  std::replace(words.begin(), words.end(), '_', ' ');
  if (found->is_list() || values.size() != 1) found->fail("a training run has one " + words + ", not a list");
  return values.front();
}

template <class Kind>
std::optional<int64_t> value_of(const YamlMap& map, const std::string& key, const Kind& kind) {
  const YamlNode* found = map.find(key);
  return found == nullptr ? std::nullopt : std::optional(found->value(kind));
}

void take_training(const YamlMap& map, TrainingRun& run) {
  const TrainingAxes axes = read_training_keys(map, {});
  run.model = single(map, "model", axes.models);
  run.data = single(map, "data", axes.data);
  run.strategy = single(map, "strategy", axes.strategies);
  run.optimizer = single(map, "optimizer", axes.optimizers);
  run.precision = single(map, "precision", axes.precisions);
  run.reduce_dtype = single(map, "reduce_dtype", axes.reduce_dtypes);
  run.transport = single(map, "transport", axes.transports);
  run.clip_norm = single(map, "clip_norm", axes.clip_norms);
  run.checkpointing = single(map, "checkpointing", axes.checkpointings);
  run.accumulation = single(map, "accumulation", axes.accumulations);
  run.batch_size = single(map, "batch_size", axes.batches);
  run.global_batch = single(map, "global_batch", axes.batches);
  if (run.batch_size == kLargest)
    map.find("batch_size")->fail("a training run has no search for the largest batch; write a number");
}

}  // namespace

TrainingRun parse_training_run(const std::string& text, const std::string& path) {
  TrainingRun run;
  run.path = path;
  run.text = text;
  const YamlMap map(YamlNode::parse(text, path, "a training run is a map with 'model' and other keys"),
                    "the training run", accepted_keys());
  take_training(map, run);
  if (const YamlNode* found = map.find("schedule"))
    run.schedule = single(map, "schedule", read_choices(*found, schedule_kind()));
  run.steps = value_of(map, "steps", values::kSteps);
  run.epochs = value_of(map, "epochs", values::kSteps);
  if (run.steps && run.epochs) map.find("epochs")->fail("there are steps too; write one of them");
  run.warmup = value_of(map, "warmup", values::kStepsOrNone);
  run.seed = value_of(map, "seed", values::kSeed);
  run.log_every = value_of(map, "log_every", values::kSteps);
  run.eval_every = value_of(map, "eval_every", values::kStepsOrNone);
  run.eval_batches = value_of(map, "eval_batches", values::kStepsOrNone);
  run.memory_limit_bytes = value_of(map, "memory_limit", values::kMemory);
  for (const char* key : {"name", "description"})
    if (const YamlNode* found = map.find(key)) static_cast<void>(found->text());
  return run;
}

TrainingRun read_training_run(const std::string& path) {
  return parse_training_run(read_text(path, "suites/train/ holds examples"), path);
}

}  // namespace shardmark
