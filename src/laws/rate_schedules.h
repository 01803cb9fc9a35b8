// The words of a training run for how its learning rate goes, with their options; optim/schedule.h follows
// them.
#pragma once

#include <map>
#include <string>

#include "schema/choice.h"

namespace shardmark::laws {

struct RateScheduleLaw {
  std::string description;
  OptionTable options;
};
const std::map<std::string, RateScheduleLaw>& rate_schedules();  // constant, cosine, step

}  // namespace shardmark::laws
