// The schedules, one row each.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace shardmark {
namespace {

double constant(const Options&, int64_t, int64_t) { return 1; }

// Source: Loshchilov and Hutter, ICLR 2017 (SGDR), equation 5, without restarts.
double cosine(const Options& options, int64_t step, int64_t steps) {
  const auto end = options.at("end").get<double>();
  const double progress =
      static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps));  // 0 when all is warm-up
  return end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

double by_steps(const Options& options, int64_t step, int64_t) {
  return std::pow(options.at("factor").get<double>(),
                  static_cast<double>(step / options.at("every").get<int64_t>()));
}

Choice resolved(const Choice& choice) {
  const auto found = schedule_laws().find(choice.name);
  if (found != schedule_laws().end()) return resolve(choice, found->second.options, "schedule");
  std::string known;
  for (const auto& [name, law] : schedule_laws()) known += (known.empty() ? "" : ", ") + name;
  throw UsageError("unknown schedule '" + choice.name + "'; known: " + known);
}

}  // namespace

const std::map<std::string, ScheduleLaw>& schedule_laws() {
  static const std::map<std::string, ScheduleLaw> laws = {
      {"constant", {"the same rate throughout", {}, constant}},
      {"cosine",
       {"half a cosine from the peak down",
        {{"end", OptionType::number, 0.0, "rate at the end, as a part of the peak", {}, 0, 1}},
        cosine}},
      {"step",
       {"multiplied by a factor every so many steps",
        {{"every", OptionType::integer, nullptr, "steps between two drops", {}, 1},
         {"factor", OptionType::number, 0.1, "of each drop", {}, 0, 1}},
        by_steps}},
  };
  return laws;
}

Schedule::Schedule(const Choice& choice, double peak, int64_t warmup_steps, int64_t num_steps)
    : choice_(resolved(choice)), peak_(peak), warmup_steps_(warmup_steps), num_steps_(num_steps) {
  if (warmup_steps < 0 || warmup_steps > num_steps)
    throw UsageError("a warm-up of " + std::to_string(warmup_steps) + " steps does not fit into a run of " +
                     std::to_string(num_steps) + "; choose 0 to " + std::to_string(num_steps));
}

double Schedule::at(int64_t step) const {
  if (step < warmup_steps_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  const int64_t steps = num_steps_ - warmup_steps_;
  const int64_t after = std::min(step - warmup_steps_, steps);
  return peak_ * schedule_laws().at(choice_.name).factor(choice_.options, after, steps);
}

}  // namespace shardmark
