// What a strategy costs by formula: memory and traffic per rank. Registered by
// src/laws/strategies/<name>.cpp; tests compare every number with what the strategy really allocates and
// sends.
#pragma once

#include "base/registry.h"
#include "laws/model_table.h"
#include "laws/program.h"

namespace shardmark::laws {

// Bytes of an element. compute: of weights and gradients as blocks see them; master: as the optimizer sees
// them; reduce: of gradients on their way between ranks, one of the two.
struct ElementBytes {
  int64_t compute;
  int64_t master;
  int64_t reduce;
  bool scaled = false;  // gradients carry a loss scale, which changes from step to step
  bool mixed() const { return compute != master; }
  bool converts() const { return reduce != compute; }
};

struct CostInput {
  const ModelTable& model;
  int64_t ranks;
  int64_t accumulation;
  ElementBytes bytes;
  int64_t optimizer_elements;  // state elements per parameter: sgd 0, sgd with momentum 1, adamw 2
  Options options;             // of the strategy, resolved
  bool norm = false;           // every step asks for the gradient's norm: clipping, fp16
};

// Bytes on the rank that has most; traffic is the mean over ranks, of one step. Padding (layout.h) is
// included, so that the numbers equal what is allocated.
struct Cost {
  double parameter_bytes = 0;  // persistent
  double gradient_bytes = 0;
  double optimizer_bytes = 0;
  double transient_bytes = 0;  // slots for gathered parameters and for gradients on their way
  double offloaded_bytes = 0;  // in host memory, beside the device's
  double ideal_bytes = 0;      // the three persistent ones together if every tensor could be cut evenly
  double traffic_bytes = 0;    // law bytes: payload x ring factor
  int64_t num_operations = 0;  // collectives started per step, on each rank
};

struct StrategyLaw {
  std::string description;
  OptionTable options;
  Cost (*cost)(const CostInput& input);
  // A step as rank 0 does it. The traffic of `cost` is what it moves.
  Program (*program)(const CostInput& input);
  // Why these options cannot work together with this precision, model or number of ranks; empty when they
  // can.
  std::string (*impossible)(const CostInput& input) = [](const CostInput&) { return std::string(); };
};

inline const StrategyLaw& strategy_law(const std::string& name) {
  return Registry<StrategyLaw>::instance().get(name, "strategy");
}

// Ring factors: bytes that a rank sends, as the mean over n ranks, for a payload of 1 byte (a payload is the
// larger of a rank's two sides). A broadcast passes the payload on n-1 times: (n-1)/n a rank. nccl-tests'
// busbw factor differs for broadcast and reduce (1), because it asks for the busiest link instead. Source:
// Patarasuk and Yuan 2009.
double ring_factor(const std::string& operation, int64_t ranks);

}  // namespace shardmark::laws
