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
  add_value(command, "--duration", overrides.duration_s, values::kDuration,
            "sustained runs: how long each point runs, such as 2h")
      ->group(group);
  offer(command.add_option("--set", overrides.set,
                           "any other key, as the suite writes it: clip_norm=1 \"tensor=[1, 2]\" seed=3 "
                           "sampling.time_limit=5 (a key that it does not know lists all)"),
        {})
      ->group(group);
}

}  // namespace shardmark
