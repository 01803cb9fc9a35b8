// Programs and times of steps.
#include "workloads/step_trace.h"

#include "base/stats.h"

namespace shardmark {

void StepTrace::begin_step() {
  first_before_ = first_;
  first_ += static_cast<int64_t>(program_.operations.size());
  program_ = {};
}

int64_t StepTrace::started(const laws::StartedOperation& operation) {
  return first_ + program_.start(operation);
}

// Every step starts the same operations, so that one of the step before has the number of its like.
void StepTrace::waited(int64_t number) {
  program_.add(laws::Moment::What::wait, number >= first_ ? number - first_ : number - first_before_);
}

void MomentTimer::at(laws::Moment::What what, int64_t index) {
  timeline_.mark();
  moments_.push_back(laws::Moment{what, index});
}

void MomentTimer::end_step() {
  timeline_.mark();
  moments_.push_back(std::nullopt);
}

std::vector<double> MomentTimer::medians(size_t num_blocks) {
  using What = laws::Moment::What;
  std::vector<std::vector<double>> seconds(2 + 2 * num_blocks);
  const std::vector<double> times = timeline_.resolve();
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    const auto& moment = moments_[i];
    if (!moment) continue;
    const auto [what, index] = *moment;
    const auto block = static_cast<size_t>(index);
    const size_t place = what == What::data       ? 0
                         : what == What::forward  ? 1 + block
                         : what == What::backward ? 1 + num_blocks + block
                                                  : 1 + 2 * num_blocks;
    seconds[place].push_back(times[i + 1] - times[i]);
  }
  moments_.clear();
  std::vector<double> medians;
  medians.reserve(seconds.size());
  for (const auto& one : seconds) medians.push_back(one.empty() ? 0 : median(one));
  return medians;
}

}  // namespace shardmark
