// The time of a step by its programs: an event simulation of ranks with one computing thread (or stream)
// each and a queue of operations, which are served in the order in which they start. Ranks of one stage do
// the same at the same time, so that one of them stands for all; those of several stages meet in messages.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "strategies/step_trace.h"

namespace shardmark::strategies {

// Seconds that a program's blocks compute.
struct ComputeTimes {
  double data_s = 0;                                    // of a micro-batch
  std::vector<double> forward_s = {}, backward_s = {};  // [block]
  double update_s = 0;
  // [block]: the part of backward_s for the gradients of parameters, where a schedule does it later; empty:
  // half of it, as it takes as many products of matrices as the rest.
  std::vector<double> backward_weight_s = {};
};

// Of a rank of each stage: [stage] or the only one.
struct SimulatedRank {
  const Program* program = nullptr;
  ComputeTimes compute = {};
  std::vector<double> operation_s = {};  // of each operation of the program
};

// Means over the stages, which all take as long.
struct SimulatedStep {
  double step_s = 0;
  double compute_s = 0;                                     // all that computes
  double communication_s = 0;                               // all operations, one after the other
  double exposed_s = 0;                                     // step_s - compute_s: waiting
  std::array<double, specs::kNumDimensions> waited_s = {};  // the same by what it is for: [Dimension]
};

// progress: how much of a second's communication gets done in a second of computing: 1 where a network moves
// by itself, 0 where only a waiting rank moves anything. In steady state: of steps without end, the last.
// timed: when each instruction of it begins and ends, [stage]; nullptr: nobody asks.
// ContractError: the programs do not fit together (serving.h).
SimulatedStep simulate(const std::vector<SimulatedRank>& stages, double progress,
                       std::vector<TimedStep>* timed = nullptr);
SimulatedStep simulate(const Program& program, const ComputeTimes& compute,
                       const std::vector<double>& operation_s, double progress, TimedStep* timed = nullptr);

}  // namespace shardmark::strategies
