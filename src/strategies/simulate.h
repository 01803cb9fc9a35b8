// Predicts the time of a step by an event simulation of its programs. Each rank has one computing thread (or
// stream) and two queues of operations, a strategy's and those inside blocks, each of which is served in the
// order in which its operations were started; two operations that share links get half of them each. Ranks of
// one pipeline stage do the same at the same time, so that one of them stands for all. Ranks of different
// stages meet in messages (meetings.h).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "strategies/step_trace.h"

namespace shardmark::strategies {

// The seconds that the computing instructions of a program take.
struct ComputeTimes {
  double data_s = 0;                                    // to load a micro-batch
  std::vector<double> forward_s = {}, backward_s = {};  // [block]
  double update_s = 0;
  // [block]: the part of backward_s that computes the gradients of parameters, for schedules that split
  // backward. If it is empty, half of backward_s is taken, because both parts compute equally many matrix
  // products.
  std::vector<double> backward_weight_s = {};
};

// One rank of a stage.
struct SimulatedRank {
  const Program* program = nullptr;
  ComputeTimes compute = {};
  std::vector<double> operation_s = {};  // [call of the program]
  // [call of the program]: the links that it shares with other operations, by a number; 0 or empty: none.
  std::vector<int64_t> operation_link = {};
};

// Means over the stages. The length of a step is the same for all of them.
struct SimulatedStep {
  double step_s = 0;
  double compute_s = 0;        // of all instructions that compute
  double communication_s = 0;  // of all operations, as if they ran one after the other
  double exposed_s = 0;        // step_s - compute_s: waiting
  std::array<double, specs::kNumDimensions> waited_s = {};  // exposed_s by what is waited for: [Dimension]
};

// Simulates a few steps and returns the last one, as one of a steady state. `progress` is how many seconds of
// communication are done in a second of computing: 1 if the network moves data by itself, 0 if data moves
// only while a rank waits. `timed`, if given, gets the begin and end of each instruction of that step,
// [stage]. Throws ContractError if the programs do not fit together (serving.h).
SimulatedStep simulate(const std::vector<SimulatedRank>& stages, double progress,
                       std::vector<TimedStep>* timed = nullptr);
SimulatedStep simulate(const Program& program, const ComputeTimes& compute,
                       const std::vector<double>& operation_s, double progress, TimedStep* timed = nullptr);

}  // namespace shardmark::strategies
