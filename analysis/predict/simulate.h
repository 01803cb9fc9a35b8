// The time of a step by its program: an event simulation of one computing thread (or stream) and one queue of
// operations, which are served in the order in which they start.
#pragma once

#include <vector>

#include "strategies/step_trace.h"

namespace shardmark {

// Seconds that a program's blocks compute.
struct ComputeTimes {
  double data_s = 0;                          // of a micro-batch
  std::vector<double> forward_s, backward_s;  // [block]
  double update_s = 0;
};

struct SimulatedStep {
  double step_s = 0;
  double compute_s = 0;        // all that computes
  double communication_s = 0;  // all operations, one after the other
  double exposed_s = 0;        // step_s - compute_s: waiting
};

// operation_s: of each operation of the program. progress: how much of a second's communication gets done in
// a second of computing: 1 where a network moves by itself, 0 where only a waiting rank moves anything. In
// steady state: of steps without end, the last.
// timed: when each instruction of it begins and ends; nullptr: nobody asks.
SimulatedStep simulate(const strategies::Program& program, const ComputeTimes& compute,
                       const std::vector<double>& operation_s, double progress,
                       strategies::TimedStep* timed = nullptr);

}  // namespace shardmark
