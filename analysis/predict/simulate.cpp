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

using What = strategies::Instruction::What;

double lasting(const strategies::Instruction& instruction, const ComputeTimes& compute) {
  const auto block = static_cast<size_t>(instruction.index);
  switch (instruction.what) {
    case What::data:
      return compute.data_s;
    case What::forward:
      return block < compute.forward_s.size() ? compute.forward_s[block] : 0;
    case What::backward:
      return block < compute.backward_s.size() ? compute.backward_s[block] : 0;
    case What::update:
      return compute.update_s;
    default:
      return 0;  // what a rank does to its own memory is part of the blocks' times
  }
}

}  // namespace

SimulatedStep simulate(const strategies::Program& program, const ComputeTimes& compute,
                       const std::vector<double>& operation_s, double progress,
                       strategies::TimedStep* timed) {
  Queue queue(program.calls.size());
  SimulatedStep step;
  constexpr int kSteps = 2;  // operations reach into the next step, not farther
  for (int i = 0; i < kSteps; ++i) {
    step = {};
    if (timed != nullptr) *timed = {&program, {}};
    for (const strategies::Instruction& instruction : program.instructions) {
      const auto first = static_cast<size_t>(instruction.index);
      const size_t end = first + static_cast<size_t>(instruction.count);
      if (instruction.what == What::start) {
        for (size_t call = first; call < end; ++call) queue.start(call, operation_s[call]);
      } else if (instruction.what == What::wait) {
        for (size_t call = first; call < end; ++call) step.exposed_s += queue.wait(call);
      } else if (instruction.is_compute()) {
        const double seconds = lasting(instruction, compute);
        step.compute_s += seconds;
        queue.advance(progress * seconds);
      }
      if (timed == nullptr) continue;
      const double end_s = step.compute_s + step.exposed_s;
      timed->times.push_back({timed->times.empty() ? 0 : timed->times.back().end_s, end_s});
    }
  }
  step.step_s = step.compute_s + step.exposed_s;
  step.communication_s = std::accumulate(operation_s.begin(), operation_s.end(), 0.0);
  return step;
}

}  // namespace shardmark
