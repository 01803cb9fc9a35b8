// The clock of the computing thread, and how far the queue of operations has come.
#include "analysis/predict/simulate.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace shardmark {
namespace {

// Operations in flight, as one queue of seconds: all that was started, and how much of it is done.
class Queue {
 public:
  explicit Queue(size_t num_operations) : ends_(num_operations, -std::numeric_limits<double>::infinity()) {}

  void start(size_t operation, double seconds) {
    started_ += seconds;
    ends_[operation] = started_;
  }
  void advance(double seconds) { done_ = std::min(started_, done_ + seconds); }
  // Seconds until an operation is complete; all before it are complete then, too.
  double wait(size_t operation) {
    const double seconds = std::max(0.0, ends_[operation] - done_);
    advance(seconds);
    return seconds;
  }

 private:
  double started_ = 0, done_ = 0;
  std::vector<double> ends_;  // [operation]: its last start, on the scale of started_
};

double lasting(const laws::Moment& moment, const ComputeTimes& compute) {
  using What = laws::Moment::What;
  const auto block = static_cast<size_t>(moment.index);
  switch (moment.what) {
    case What::data:
      return compute.data_s;
    case What::forward:
      return block < compute.forward_s.size() ? compute.forward_s[block] : 0;
    case What::backward:
      return block < compute.backward_s.size() ? compute.backward_s[block] : 0;
    case What::update:
      return compute.update_s;
    case What::start:
    case What::wait:
      break;
  }
  return 0;
}

}  // namespace

SimulatedStep simulate(const laws::Program& program, const ComputeTimes& compute,
                       const std::vector<double>& operation_s, double progress) {
  using What = laws::Moment::What;
  Queue queue(program.operations.size());
  SimulatedStep step;
  constexpr int kSteps = 2;  // operations reach into the next step, not farther
  for (int i = 0; i < kSteps; ++i) {
    step = {};
    for (const laws::Moment& moment : program.moments) {
      const auto index = static_cast<size_t>(moment.index);
      if (moment.what == What::start) {
        queue.start(index, operation_s[index]);
      } else if (moment.what == What::wait) {
        step.exposed_s += queue.wait(index);
      } else {
        const double seconds = lasting(moment, compute);
        step.compute_s += seconds;
        queue.advance(progress * seconds);
      }
    }
  }
  step.step_s = step.compute_s + step.exposed_s;
  step.communication_s = std::accumulate(operation_s.begin(), operation_s.end(), 0.0);
  return step;
}

}  // namespace shardmark
