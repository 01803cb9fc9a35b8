// The factors of learning-rate schedules, one function each.
#include "executor/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/error.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

double constant(const Options&, int64_t, int64_t) { return 1; }

// Source: Loshchilov and Hutter, ICLR 2017 (SGDR), equation 5, without restarts.
double cosine(const Options& options, int64_t step, int64_t steps) {
  const auto end = options.at("end").get<double>();
  // With warm-up steps alone, `steps` is 0.
  const double progress = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps));
  return end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

double by_steps(const Options& options, int64_t step, int64_t) {
  const int64_t times = step / options.at("every").get<int64_t>();
  return std::pow(options.at("factor").get<double>(), static_cast<double>(times));
}

// The factor of the peak rate. `step` counts from 0 after the warm-up; there are `steps` of them.
using Factor = double (*)(const Options& options, int64_t step, int64_t steps);

Factor factor_of(const std::string& name) {
  static const std::map<std::string, Factor> factors = {
      {"constant", constant}, {"cosine", cosine}, {"step", by_steps}};
  return factors.at(name);
}

Choice resolved(const Choice& choice) {
  const auto found = specs::lr_scheduler_specs().find(choice.name);
  if (found != specs::lr_scheduler_specs().end()) return resolve(choice, found->second.options, "schedule");
  std::string known;
  for (const auto& [name, spec] : specs::lr_scheduler_specs()) known += (known.empty() ? "" : ", ") + name;
  throw UsageError("unknown schedule '" + choice.name + "'; known: " + known);
}

}  // namespace

LRScheduler::LRScheduler(const Choice& choice, double peak, int64_t warmup_steps, int64_t num_steps)
    : choice_(resolved(choice)), peak_(peak), warmup_steps_(warmup_steps), num_steps_(num_steps) {
  if (warmup_steps < 0 || warmup_steps > num_steps)
    throw UsageError("a warm-up of " + std::to_string(warmup_steps) + " steps does not fit into a run of " +
                     std::to_string(num_steps) + "; choose 0 to " + std::to_string(num_steps));
}

double LRScheduler::at(int64_t step) const {
  if (step < warmup_steps_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  const int64_t steps = num_steps_ - warmup_steps_;
  const int64_t after = std::min(step - warmup_steps_, steps);
  return peak_ * factor_of(choice_.name)(choice_.options, after, steps);
}

}  // namespace shardmark
