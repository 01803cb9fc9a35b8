// The learning-rate schedules of a training run, by name and options; executor/optim/schedule.h computes
// them.
#pragma once

#include <map>
#include <string>

#include "schema/choice.h"

namespace shardmark::specs {

struct RateScheduleSpec {
  std::string description;
  OptionTable options;
  bool by_length = false;  // its rates depend on how many steps the run has
};
const std::map<std::string, RateScheduleSpec>& rate_schedules();  // constant, cosine, step

}  // namespace shardmark::specs
