// Learning rates are a pure function of the step, so that a run that is resumed elsewhere gets the same ones.
#pragma once

#include <cstdint>
#include <string>

#include "schema/choice.h"

namespace shardmark {

// A linear warm-up, followed by a schedule from the table in specs/specs.h.
class LRScheduler {
 public:
  // `choice` is unresolved. Throws UsageError if the schedule or an option is unknown, or the warm-up is
  // longer than the run.
  LRScheduler(const Choice& choice, double peak, int64_t warmup_steps, int64_t num_steps);

  // The rate of the update at the end of this step, counted from 0. The warm-up rises linearly and reaches
  // the peak in its last step (Goyal et al. 2017, section 2.2).
  double at(int64_t step) const;

 private:
  Choice choice_;
  double peak_;
  int64_t warmup_steps_, num_steps_;
};

}  // namespace shardmark
