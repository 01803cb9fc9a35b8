// Learning rates: a pure function of the step, so that a run resumed elsewhere gets the same ones.
#pragma once

#include <cstdint>
#include <string>

#include "schema/choice.h"

namespace shardmark {

// A linear warm-up, then a schedule of the table in specs/rate_schedules.h.
class RateSchedule {
 public:
  // choice: unresolved. UsageError: an unknown schedule or option, a warm-up longer than the run.
  RateSchedule(const Choice& choice, double peak, int64_t warmup_steps, int64_t num_steps);

  // Of the update that ends this step, counted from 0. The warm-up rises by equal amounts and reaches the
  // peak with its last step (Goyal et al. 2017, section 2.2).
  double at(int64_t step) const;

 private:
  Choice choice_;
  double peak_;
  int64_t warmup_steps_, num_steps_;
};

}  // namespace shardmark
