// Adds the flags that replace axes of a suite.
#include "cli/overrides.h"

#include "cli/axis_flags.h"

namespace shardmark {

void add_override_flags(CLI::App& command, Overrides& overrides) {
  const std::string group = "Overrides of the suite";
  for_each_axis([&](const AxisRow& axis) {
    if (axis.flag != nullptr) add_axis(command, axis.flag, overrides.axes[axis.key], axis)->group(group);
  });
  add_value(command, "--steps", overrides.steps, values::kSteps, "timed steps of each point")->group(group);
  add_value(command, "--repeats", overrides.repeats, values::kRepeats,
            "how many times each point is measured")
      ->group(group);
  add_value(command, "--seed", overrides.seed, values::kSeed,
            "seed of the initial weights, the data and the order of points")
      ->group(group);
  add_value(command, "--time-limit", overrides.time_limit_s, values::kTimeLimit,
            "time limit of the timed steps of each point, in seconds")
      ->group(group);
  add_value(command, "--duration", overrides.duration_s, values::kDuration,
            "sustained runs: how long each point runs, such as 2h")
      ->group(group);
}

}  // namespace shardmark
