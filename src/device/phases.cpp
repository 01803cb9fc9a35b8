// Phases from marks: the time between two marks belongs to the phase that the first one entered.
#include "device/phases.h"

namespace shardmark {

void PhaseClock::begin_step() {
  marks_.push_back({Phase::data, true});
  timeline_.mark();
}

void PhaseClock::enter(Phase phase) {
  marks_.push_back({phase, false});
  timeline_.mark();
}

void PhaseClock::end() { enter(Phase::data); }

std::vector<std::array<double, kNumPhases>> PhaseClock::resolve() {
  const auto times = timeline_.resolve();
  std::vector<std::array<double, kNumPhases>> steps;
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i].begins_step) steps.push_back({});
    if (i + 1 < marks_.size() && !steps.empty())
      steps.back()[static_cast<size_t>(marks_[i].phase)] += times[i + 1] - times[i];
  }
  marks_.clear();
  return steps;
}

}  // namespace shardmark
