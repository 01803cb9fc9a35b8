// What a strategy is: options, and the program of a step. Everything else follows from the program: what a
// rank executes, what it costs, how long it takes. Registered by src/strategies/<name>.cpp.
#pragma once

#include "base/registry.h"
#include "schema/point.h"
#include "specs/element_bytes.h"
#include "strategies/program.h"
#include "strategies/schedule.h"

namespace shardmark::strategies {

// What a step is written for. `model` outlives the input.
struct StepInput {
  const ModelTable& model;
  int64_t ranks;
  int64_t accumulation;  // micro-batches
  specs::ElementBytes bytes;
  int64_t optimizer_elements;    // state elements per parameter: sgd 0, sgd with momentum 1, adamw 2
  Options options;               // of the strategy, resolved
  bool norm = false;             // every step asks for the gradient's norm: clipping, fp16
  int64_t rank = 0;              // whose program it is
  int64_t recompute = 0;         // every n-th block is computed again in backward; 0: none
  bool masks_documents = false;  // of packed samples, by a mask of T x T scores
  Team all() const { return {ranks, 1}; }
  Schedule schedule() const {  // of a step
    return accumulate(std::ssize(model.blocks), accumulation, recompute);
  }
};
// Of a training point, every choice resolved; `table` must outlive it.
StepInput step_input(const Point& point, const ModelTable& table);

// Bytes on the rank that has most; traffic is the mean over ranks, of one step.
struct Cost {
  double parameter_bytes = 0;  // persistent
  double gradient_bytes = 0;
  double optimizer_bytes = 0;
  double transient_bytes = 0;  // slots for gathered parameters and for gradients on their way
  double offloaded_bytes = 0;  // in host memory, beside the device's
  double traffic_bytes = 0;    // ring bytes: payload x ring factor
  int64_t num_operations = 0;  // collectives started per step, on each rank
};

struct Strategy {
  std::string description;
  OptionTable options;
  // The program of this order of computing, with the memory of a step.
  Program (*write)(const StepInput& input, const Schedule& schedule);
  // What its paper says that this program costs (strategies/paper.h): padding and operations aside. NaN: no
  // formula.
  Cost (*paper)(const StepInput& input);
  // Why these options cannot work together with this precision, model or number of ranks; empty when they
  // can.
  std::string (*impossible)(const StepInput& input) = [](const StepInput&) { return std::string(); };

  Program step(const StepInput& input) const { return write(input, input.schedule()); }
  Program evaluation(const StepInput& input) const {
    return write(input, forward_only(std::ssize(input.model.blocks)));
  }
};

inline const Strategy& strategy(const std::string& name) {
  return Registry<Strategy>::instance().get(name, "strategy");
}

// The sums over a program's buffers and calls. Padding (specs/layout.h) is included, so that the numbers
// equal what is allocated.
Cost cost_of(const Program& program, const StepInput& input);
inline Cost cost_of(const std::string& name, const StepInput& input) {
  return cost_of(strategy(name).step(input), input);
}

}  // namespace shardmark::strategies
