// The table of learning-rate schedules.
#include "specs/rate_schedules.h"

namespace shardmark::specs {

const std::map<std::string, RateScheduleSpec>& rate_schedules() {
  static const std::map<std::string, RateScheduleSpec> table = {
      {"constant", {"the same rate throughout", {}}},
      {"cosine",
       {"half a cosine from the peak down",
        {{"end", OptionType::number, 0.0, "rate at the end, as a part of the peak", {}, 0, 1}},
        /*by_length=*/true}},
      {"step",
       {"multiplied by a factor at a fixed interval of steps",
        {{"every", OptionType::integer, nullptr, "steps between two drops", {}, 1},
         {"factor", OptionType::number, 0.1, "of each drop", {}, 0, 1}}}},
  };
  return table;
}

}  // namespace shardmark::specs
