// The words of a training run for how its learning rate goes, with their options; executor/optim/schedule.h
// follows them.
#pragma once

#include <map>
#include <string>

#include "schema/choice.h"

namespace shardmark::specs {

struct RateScheduleSpec {
  std::string description;
  OptionTable options;
};
const std::map<std::string, RateScheduleSpec>& rate_schedules();  // constant, cosine, step

}  // namespace shardmark::specs
