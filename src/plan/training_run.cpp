// Reads a run with the readers of a suite's axes, one value for each.
#include "plan/training_run.h"

#include <algorithm>

#include "plan/axes.h"
#include "plan/axis_values.h"
#include "plan/choice_axis.h"

namespace shardmark {
namespace {

std::vector<std::string> accepted_keys() {
  std::vector<std::string> keys = block_keys("training");
  std::erase_if(keys, [](const std::string& key) { return key == "ranks" || key == "sampling"; });
  keys.insert(keys.end(), {"schedule", "warmup", "steps", "epochs", "seed", "log_every", "eval_every",
                           "eval_batches", "memory_limit", "name", "description"});
  return keys;
}

// values: what was read from the node.
template <class Value>
Value single(const YamlNode& node, const std::vector<Value>& values) {
  std::string words = node.key();
  std::replace(words.begin(), words.end(), '_', ' ');
  if (node.is_list() || values.size() != 1) node.fail("a training run has one " + words + ", not a list");
  return values.front();
}

template <class Kind>
std::optional<int64_t> value_of(const YamlMap& map, const std::string& key, const Kind& kind) {
  const YamlNode* found = map.find(key);
  return found == nullptr ? std::nullopt : std::optional(found->value(kind));
}

void take_axes(const YamlMap& map, TrainingRun& run) {
  for_each_axis([&](const AxisRow& axis) {
    if (const YamlNode* found = map.find(axis.key))
      run.axes[axis.key] = single(*found, read_values(axis, *found));
  });
  refuse_two_batches(map);
  if (map.find("batch_size") != nullptr && run.axes["batch_size"] == AxisValue(kLargest))
    map.find("batch_size")->fail("a training run has no search for the largest batch; write a number");
}

}  // namespace

TrainingRun parse_training_run(const std::string& text, const std::string& path) {
  TrainingRun run;
  run.path = path;
  run.text = text;
  const YamlMap map(YamlNode::parse(text, path, "a training run is a map with 'model' and other keys"),
                    "the training run", accepted_keys());
  take_axes(map, run);
  if (const YamlNode* found = map.find("schedule"))
    run.schedule = single(*found, read_choices(*found, schedule_kind()));
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
