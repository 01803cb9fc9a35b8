// Reads the blocks of a suite: the values of axes that the file lists, and the sampling.
#include "plan/axes.h"
#include "plan/axis_values.h"
#include "plan/choice_axis.h"

namespace shardmark {
namespace {

Sampling read_sampling(const YamlNode& node, Sampling sampling) {
  const YamlMap map(node, "sampling",
                    {"warmup_steps", "min_steps", "max_steps", "time_limit", "precision", "duration"});
  const auto read = [&](const char* key, const auto& kind, auto& value) {
    if (const auto* found = map.find(key)) value = found->value(kind);
  };
  read("warmup_steps", values::kStepsOrNone, sampling.warmup_steps);
  read("min_steps", values::kSteps, sampling.min_steps);
  read("max_steps", values::kSteps, sampling.max_steps);
  read("time_limit", values::kTimeLimit, sampling.time_limit_s);
  read("precision", values::kPrecision, sampling.precision);
  read("duration", values::kDuration, sampling.duration_s);
  if (sampling.min_steps > sampling.max_steps)
    node.fail("min_steps " + std::to_string(sampling.min_steps) + " is above max_steps " +
              std::to_string(sampling.max_steps));
  return sampling;
}

template <class Axes>
void read_axes(const YamlMap& map, const Axes& axes, SuiteBlock& block) {
  for (const AxisRow& axis : axes) {
    if (axis.required) map.need(axis.key);
    if (axis.default_choice != nullptr)
      set_value(axis, as_value(axis, choice_from_flag(axis.default_choice, axis.key, kind_of(axis.key))),
                block.base);
  }
  for (const AxisRow& axis : axes)
    if (const auto* found = map.find(axis.key)) {
      block.values[axis.key] = read_block_values(axis, *found);
      if (axis.scaling != nullptr) block.base.training.scaling = axis.scaling;
    }
}

void read_common(const YamlMap& map, SuiteBlock& block) {
  block.place = map.node().place();
  read_axes(map, kCommonAxes, block);
  if (const auto* found = map.find("sampling"))
    block.base.sampling = read_sampling(*found, block.base.sampling);
}

}  // namespace

SuiteBlock read_defaults(const YamlMap& top) {
  SuiteBlock defaults;
  defaults.base.ranks = kWorldSize;
  read_common(top, defaults);
  return defaults;
}

std::vector<std::string> block_keys(const std::string& workload) {
  std::vector<std::string> keys;
  const auto add = [&](const auto& axes) {
    for (const AxisRow& axis : axes) keys.emplace_back(axis.key);
  };
  if (workload == "training")
    add(kTrainingAxes);
  else
    add(kCollectiveAxes);
  add(kCommonAxes);
  keys.emplace_back("sampling");
  return keys;
}

void refuse_two_batches(const YamlMap& map) {
  if (map.find("batch_size") != nullptr && map.find("global_batch") != nullptr)
    map.find("global_batch")->fail("there is a batch_size too; write one of them");
}

SuiteBlock read_block(const YamlNode& node, const std::string& workload, const SuiteBlock& defaults) {
  const bool training = workload == "training";
  const YamlMap map(node, training ? "training" : "collectives", block_keys(workload));
  SuiteBlock block = defaults;
  block.base.workload = workload;
  read_common(map, block);
  if (!training) {
    read_axes(map, kCollectiveAxes, block);
    return block;
  }
  read_axes(map, kTrainingAxes, block);
  refuse_two_batches(map);
  if (map.find("batch_size") == nullptr && map.find("global_batch") == nullptr)
    node.fail("needs batch_size (per rank: weak scaling) or global_batch (of all ranks: strong scaling)");
  return block;
}

}  // namespace shardmark
