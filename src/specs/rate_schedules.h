// The names and options of learning-rate schedules. executor/optim/rate_schedule.h computes the rates.
#pragma once

#include <map>
#include <string>

#include "schema/choice.h"

namespace shardmark::specs {

struct RateScheduleSpec {
  std::string description;
  OptionTable options;
  bool by_length = false;  // the rates depend on the number of steps of the run
};
const std::map<std::string, RateScheduleSpec>& rate_schedules();  // constant, cosine, step

}  // namespace shardmark::specs
