// The command line over a suite: a list that is given replaces the axis in every block that has it.
#include <algorithm>

#include "base/units.h"
#include "laws/vocabulary.h"
#include "plan/axes.h"
#include "plan/choice_axis.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

void require(bool used, const std::string& flag, const std::string& path, const std::string& what) {
  if (!used)
    throw UsageError(flag + ": " + path + " has no " + what + "; leave the flag out or choose another suite");
}

void require_counts(const std::vector<int64_t>& values, const std::string& flag, int64_t maximum) {
  for (int64_t value : values)
    if (value < 1 || value > maximum)
      throw UsageError(flag + ": expected whole numbers from 1 to " + std::to_string(maximum) + ", got " +
                       std::to_string(value));
}

std::vector<std::string> checked_precisions(const std::vector<std::string>& words) {
  const auto known = names_of(laws::precision_laws());
  for (const auto& word : words)
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw UsageError("--precisions: unknown precision " + quoted_line(word) + "; " +
                       accepted_words(word, known));
  return words;
}

void apply_batches(const std::vector<int64_t>& batches, std::vector<TrainingAxes>& training,
                   const std::string& path) {
  require_counts(batches, "--batch-sizes", kMostBatch);
  bool used = false;
  for (auto& axes : training)
    if (axes.scaling == "weak") {
      axes.batches = batches;
      used = true;
    }
  require(used, "--batch-sizes", path, "training block with batch_size");
}

double checked_duration(const std::string& text) {
  const double seconds = [&] {
    try {
      return parse_seconds(text);
    } catch (const UsageError& error) {
      throw UsageError(std::string("--duration: ") + error.what());
    }
  }();
  if (seconds > 0) return seconds;
  throw UsageError("--duration: expected a time above 0, such as 90s, 30m or 2h");
}

void apply_common(const Overrides& overrides, CommonAxes& axes) {
  if (!overrides.ranks.empty()) axes.ranks = overrides.ranks;
  if (overrides.steps) axes.sampling.min_steps = axes.sampling.max_steps = *overrides.steps;
  if (overrides.time_limit_s) axes.sampling.time_limit_s = *overrides.time_limit_s;
  if (!overrides.duration.empty()) axes.sampling.duration_s = checked_duration(overrides.duration);
}

}  // namespace

void apply(const Overrides& overrides, std::vector<TrainingAxes>& training,
           std::vector<CollectiveAxes>& collectives, const std::string& path) {
  require_counts(overrides.ranks, "--ranks", kMostRanks);
  require_counts({overrides.steps.value_or(1)}, "--steps", 1000000000);
  if (!(overrides.time_limit_s.value_or(1) > 0)) throw UsageError("--time-limit: expected seconds above 0");
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
  replace(checked_precisions(overrides.precisions), "--precisions", &TrainingAxes::precisions);
  if (!overrides.batch_sizes.empty()) apply_batches(overrides.batch_sizes, training, path);
}

}  // namespace shardmark
