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
  if (weak == nullptr && strong == nullptr)
    map.node().fail(
        "needs batch_size (per rank: weak scaling) or global_batch (of all ranks: strong scaling)");
  axes.batches = weak != nullptr ? read_axis(*weak, read_batch) : read_values(*strong, values::kBatch);
  axes.scaling = weak != nullptr ? "weak" : "strong";
}

std::vector<Choice> read_choices_or(const YamlNode* node, const std::string& default_name,
                                    const ChoiceKind& kind) {
  return node != nullptr ? read_choices(*node, kind) : choices_from_flag({default_name}, kind.noun, kind);
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

TrainingAxes read_training(const YamlNode& block, const CommonAxes& defaults) {
  const YamlMap map(
      block, "training",
      {"model", "data", "strategy", "optimizer", "precision", "reduce_dtype", "clip_norm", "checkpointing",
       "batch_size", "global_batch", "accumulation", "ranks", "transport", "sampling"});
  TrainingAxes axes;
  static_cast<CommonAxes&>(axes) = read_common(map, defaults);
  axes.models = read_choices(map.need("model"), model_kind());
  axes.strategies = read_choices(map.need("strategy"), strategy_kind());
  axes.data = read_choices_or(map.find("data"), "synthetic", data_kind());
  axes.optimizers = read_choices_or(map.find("optimizer"), "sgd", optimizer_kind());
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

}  // namespace shardmark
