// Applies the command line to a suite: a list that is given as a flag replaces the axis in every block that
// has it.
#include "plan/axes.h"
#include "plan/axis_values.h"

namespace shardmark {
namespace {

std::string flag_of(const AxisRow& axis) { return axis.flag == nullptr ? axis.key : axis.flag; }

void replace(const AxisRow& axis, const std::vector<std::string>& texts, std::vector<SuiteBlock>& blocks,
             const std::string& path) {
  const std::string flag = flag_of(axis);
  const std::vector<AxisValue> values = values_from_flag(axis, texts, flag);
  bool used = false;
  for (SuiteBlock& block : blocks) {
    if (!has_axis(block.base, axis)) continue;
    block.values[axis.key] = values;
    used = true;
  }
  if (!used)
    throw UsageError(flag + ": " + path + " has no " + workload_of(axis) + " block" +
                     (axis.scaling == nullptr ? "" : std::string(" with ") + axis.key) +
                     "; leave the flag out or choose another suite");
}

}  // namespace

void apply(const Overrides& overrides, std::vector<SuiteBlock>& blocks, const std::string& path) {
  for (SuiteBlock& block : blocks) {
    Sampling& sampling = block.base.sampling;
    if (overrides.steps) sampling.min_steps = sampling.max_steps = *overrides.steps;
    if (overrides.time_limit_s) sampling.time_limit_s = *overrides.time_limit_s;
    if (overrides.duration_s) sampling.duration_s = *overrides.duration_s;
  }
  for (const auto& [key, texts] : overrides.axes)
    if (!texts.empty()) replace(axis_named(key), texts, blocks, path);
}

}  // namespace shardmark
