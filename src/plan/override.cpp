// The command line over a suite: a list that is given replaces the axis in every block that has it.
#include <algorithm>

#include "plan/axes.h"
#include "plan/choice_axis.h"

namespace shardmark {
namespace {

void require(bool used, const std::string& flag, const std::string& path, const std::string& what) {
  if (!used)
    throw UsageError(flag + ": " + path + " has no " + what + "; leave the flag out or choose another suite");
}

void apply_batches(const std::vector<int64_t>& batches, std::vector<TrainingAxes>& training,
                   const std::string& path) {
  bool used = false;
  for (auto& axes : training)
    if (axes.scaling == "weak") {
      axes.batches = batches;
      used = true;
    }
  require(used, "--batch-sizes", path, "training block with batch_size");
}

void apply_common(const Overrides& overrides, CommonAxes& axes) {
  if (!overrides.ranks.empty()) axes.ranks = overrides.ranks;
  if (overrides.steps) axes.sampling.min_steps = axes.sampling.max_steps = *overrides.steps;
  if (overrides.time_limit_s) axes.sampling.time_limit_s = *overrides.time_limit_s;
  if (overrides.duration_s) axes.sampling.duration_s = *overrides.duration_s;
}

}  // namespace

void apply(const Overrides& overrides, std::vector<TrainingAxes>& training,
           std::vector<CollectiveAxes>& collectives, const std::string& path) {
  for (auto& axes : training) apply_common(overrides, axes);
  for (auto& axes : collectives) apply_common(overrides, axes);

  const auto replace = [&](const auto& values, const std::string& flag, auto member) {
    if (values.empty()) return;
    require(!training.empty(), flag, path, "training block");
    for (auto& axes : training) axes.*member = values;
  };
  replace(choices_from_flag(overrides.models, "--models", model_kind()), "--models", &TrainingAxes::models);
  replace(choices_from_flag(overrides.strategies, "--strategies", strategy_kind()), "--strategies",
          &TrainingAxes::strategies);
  replace(choices_from_flag(overrides.optimizers, "--optimizers", optimizer_kind()), "--optimizers",
          &TrainingAxes::optimizers);
  replace(overrides.precisions, "--precisions", &TrainingAxes::precisions);
  if (!overrides.batch_sizes.empty()) apply_batches(overrides.batch_sizes, training, path);
}

}  // namespace shardmark
