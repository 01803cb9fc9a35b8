// Training blocks: models, data, strategies, optimizers, batches.
#include "laws/vocabulary.h"
#include "plan/axes.h"
#include "plan/choice_axis.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

void read_batches(const YamlMap& map, TrainingAxes& axes) {
  const auto* weak = map.find("batch_size");
  const auto* strong = map.find("global_batch");
  if (weak != nullptr && strong != nullptr) strong->fail("there is a batch_size too; write one of them");
  if (weak != nullptr) axes.batches = read_axis(*weak, read_batch);
  if (strong != nullptr) axes.batches = read_values(*strong, values::kBatch);
  axes.scaling = strong == nullptr ? "weak" : "strong";
}

}  // namespace

double read_clip_norm(const YamlNode& node) {
  return node.text() == "none" ? 0 : node.value(values::kNormAboveZero);
}

int64_t read_batch(const YamlNode& node) {
  if (node.text() == "largest") return kLargest;
  try {
    return node.value(values::kBatch);
  } catch (const UsageError&) {
    node.fail("expected " + values::kBatch.expected() +
              ", or largest (the most that fits into memory), got " + node.describe());
  }
}

int64_t read_checkpointing(const YamlNode& node) {
  if (node.text() == "none") return 0;
  if (node.text() == "full") return 1;
  try {
    return node.value(values::kEveryBlock);
  } catch (const UsageError&) {
    node.fail("expected none, full, or n to recompute every n-th block, got " + node.describe());
  }
}

const std::vector<std::string>& training_keys() {
  static const std::vector<std::string> keys = {
      "model",         "data",       "strategy",     "optimizer",    "precision", "reduce_dtype", "clip_norm",
      "checkpointing", "batch_size", "global_batch", "accumulation", "ranks",     "transport",    "sampling"};
  return keys;
}

TrainingAxes read_training_keys(const YamlMap& map, TrainingAxes axes) {
  static_cast<CommonAxes&>(axes) = read_common(map, axes);
  if (const auto* found = map.find("model")) axes.models = read_choices(*found, model_kind());
  if (const auto* found = map.find("strategy")) axes.strategies = read_choices(*found, strategy_kind());
  if (const auto* found = map.find("data")) axes.data = read_choices(*found, data_kind());
  if (const auto* found = map.find("optimizer")) axes.optimizers = read_choices(*found, optimizer_kind());
  if (const auto* found = map.find("precision"))
    axes.precisions = read_values(*found, Word{names_of(laws::precision_laws())});
  if (const auto* found = map.find("reduce_dtype"))
    axes.reduce_dtypes = read_values(*found, Word{laws::reduce_dtype_names()});
  if (const auto* found = map.find("clip_norm")) axes.clip_norms = read_axis(*found, read_clip_norm);
  if (const auto* found = map.find("checkpointing"))
    axes.checkpointings = read_axis(*found, read_checkpointing);
  if (const auto* found = map.find("accumulation"))
    axes.accumulations = read_values(*found, values::kAccumulation);
  read_batches(map, axes);
  return axes;
}

TrainingAxes read_training(const YamlNode& block, const CommonAxes& defaults) {
  const YamlMap map(block, "training", training_keys());
  TrainingAxes axes;
  static_cast<CommonAxes&>(axes) = defaults;
  axes.data = choices_from_flag({"synthetic"}, "data", data_kind());
  axes.optimizers = choices_from_flag({"sgd"}, "optimizer", optimizer_kind());
  map.need("model");
  map.need("strategy");
  axes = read_training_keys(map, axes);
  if (axes.batches.empty())
    map.node().fail(
        "needs batch_size (per rank: weak scaling) or global_batch (of all ranks: strong scaling)");
  return axes;
}

}  // namespace shardmark
