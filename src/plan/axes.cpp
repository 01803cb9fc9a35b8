// Reads the blocks of a suite (the values of axes that the file lists, and the sampling), applies the
// command line to them, and expands them to points.
#include "plan/axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/axis_values.h"
#include "plan/choice_axis.h"
#include "plan/effects.h"
#include "specs/collectives.h"

namespace shardmark {

const std::vector<std::string>& sampling_keys() {
  static const std::vector<std::string> keys = {"warmup_steps", "min_steps", "max_steps",
                                                "time_limit",   "precision", "duration"};
  return keys;
}

Sampling read_sampling(const YamlNode& node, Sampling sampling) {
  const YamlMap map(node, "sampling", sampling_keys());
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

namespace {

// Reads the axes that the map has. The defaults that are choices are set first: they are texts in the table
// of axes, and every point needs them with all of their options.
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

namespace {

// Values that the command line gives replace the axis in every block that has it. `flag` is what gave them,
// for messages.
void replace(const AxisRow& axis, const std::vector<AxisValue>& values, const std::string& flag,
             std::vector<SuiteBlock>& blocks, const std::string& path) {
  bool used = false;
  for (SuiteBlock& block : blocks) {
    if (!has_axis(block.base, axis)) continue;
    block.values[axis.key] = values;
    used = true;
  }
  if (!used)
    throw UsageError(flag + ": " + path + " has no " + workload_of(axis) + " block" +
                     (axis.scaling == nullptr ? "" : std::string(" with ") + axis.key) +
                     "; leave it out or choose another suite");
}

}  // namespace

void apply(const YamlMap& set, std::vector<SuiteBlock>& blocks, const std::string& path) {
  for_each_axis([&](const AxisRow& axis) {
    if (const YamlNode* const found = set.find(axis.key))
      replace(axis, read_block_values(axis, *found), std::string("--set ") + axis.key, blocks, path);
  });
  if (const YamlNode* const found = set.find("sampling"))
    for (SuiteBlock& block : blocks) block.base.sampling = read_sampling(*found, block.base.sampling);
}

void apply(const Overrides& overrides, std::vector<SuiteBlock>& blocks, const std::string& path) {
  for (SuiteBlock& block : blocks) {
    Sampling& sampling = block.base.sampling;
    if (overrides.steps) sampling.min_steps = sampling.max_steps = *overrides.steps;
    if (overrides.duration_s) sampling.duration_s = *overrides.duration_s;
  }
  for (const auto& [key, texts] : overrides.axes) {
    if (texts.empty()) continue;
    const AxisRow& axis = axis_named(key);
    const std::string flag = axis.flag == nullptr ? axis.key : axis.flag;
    replace(axis, values_from_flag(axis, texts, flag), flag, blocks, path);
  }
}

namespace {

constexpr size_t kMostPointsOfBlock = 100000;  // a guard against mistakes

// Whether an axis of a collective is skipped: an operation that does not reduce, cannot run in place, or has
// equal parts has only one value on that axis. For training points this needs the number of ranks and is
// decided later, by settle_idle_values().
bool passes_over(const AxisRow& axis, const Point& point) {
  return point.workload == "collective" && !acts(axis, point);
}

// Reports an axis whose values no point takes: a list gives a warning, and a single value is an error unless
// the points have it anyway.
void tell_unused(const AxisRow& axis, const SuiteBlock& block, const std::vector<Point>& points,
                 std::vector<std::string>& warnings) {
  const std::vector<AxisValue>& values = block.values.at(axis.key);
  if (!std::all_of(points.begin(), points.end(),
                   [&](const Point& point) { return passes_over(axis, point); }))
    return;
  if (values.size() > 1) {
    warnings.push_back(fmt::format("{}{} changes nothing here, so that its values are one point: {}",
                                   block.place, axis.key, why_idle(axis, points.front())));
    return;
  }
  Point written = points.front();
  set_value(axis, values.front(), written);
  if (!is_default(axis, written) && value_of(axis, points.front()) != values.front())
    throw UsageError(fmt::format("{}{} {} changes nothing here: {}, or leave it out", block.place, axis.key,
                                 value_text(axis, written), why_idle(axis, points.front())));
}

// Replaces the points by their product with the values of one more axis.
void cross(std::vector<Point>& points, const AxisRow& axis, const std::vector<AxisValue>& values,
           const std::string& place) {
  std::vector<Point> product;
  for (const auto& point : points) {
    if (passes_over(axis, point)) {
      product.push_back(point);
      continue;
    }
    if (product.size() + values.size() > kMostPointsOfBlock)
      throw UsageError(fmt::format("{}this block makes more than {} points; shorten its lists", place,
                                   kMostPointsOfBlock));
    for (const auto& value : values) {
      product.push_back(point);
      set_value(axis, value, product.back());
    }
  }
  points = std::move(product);
}

// Sets what the operation decides. Throws UsageError for parts that it cannot have.
void settle(Point& point, const SuiteBlock& block) {
  CollectivePoint& c = point.collective;
  const specs::CollectiveRow& row = specs::operation(c.operation);
  if (!row.reduces) c.reduction = "none";
  if (!row.in_place) c.in_place = false;
  if (row.moves_tokens && !block.values.contains("parts"))
    c.parts = to_text(choice_from_flag("experts", "parts", kind_of("parts")));
  const std::string parts = choice_from_text(c.parts).name;
  if (row.moves_tokens != (parts == "experts"))
    throw UsageError(fmt::format("{}parts {} are not for {}, which takes {}; write a block for each",
                                 block.place, parts, row.name,
                                 row.moves_tokens ? "parts experts" : "equal, hot, zipf or counts"));
}

}  // namespace

// The product of the values of the axes. The loop order of axes (AxisRow::loop) decides the order of points:
// the innermost loop varies fastest.
std::vector<Point> expand(const SuiteBlock& block, std::vector<std::string>& warnings) {
  std::vector<const AxisRow*> axes;
  for_each_axis([&](const AxisRow& axis) {
    if (block.values.contains(axis.key)) axes.push_back(&axis);
  });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const AxisRow* a, const AxisRow* b) { return a->loop < b->loop; });
  std::vector<Point> points = {block.base};
  for (const AxisRow* axis : axes) cross(points, *axis, block.values.at(axis->key), block.place);
  for (Point& point : points) {
    if (point.workload == "collective") settle(point, block);
  }
  for (const AxisRow* axis : axes) tell_unused(*axis, block, points, warnings);
  return points;
}

}  // namespace shardmark
