// The orders of all ranks of a pipeline together: what in them cannot be, and how long they take for given
// costs. Forward of part k needs that of part k - 1; backward, or backward_input, of part k needs that of
// part k + 1 and its own forward; backward_weight needs its own backward_input: always of one micro-batch.
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline.h"

namespace shardmark::strategies {

// Seconds that a part of the model takes.
struct PassCosts {
  double forward_s = 1, backward_s = 2, backward_input_s = 1, backward_weight_s = 1;

  double of(Pass pass) const;
};

struct PipelineCosts {
  PassCosts all = {};                                  // of every part ...
  std::vector<std::vector<PassCosts>> of_chunks = {};  // ... or of each one, [rank][chunk]
  double latency_s = 0;  // from the end of a part to the next one's begin on another rank

  const PassCosts& at(size_t rank, int64_t chunk) const {
    return of_chunks.empty() ? all : of_chunks[rank][static_cast<size_t>(chunk)];
  }
};

struct TimedAction {
  PipelineAction action;
  double begin_s, end_s;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedAction>> ranks;  // [rank], in its order; each begins as early as it can
  double length_s = 0;                          // from the first begin to the last end
  std::vector<double> idle_s = {};              // [rank]: the length without its actions
  // [rank]: most pairs of chunk and micro-batch whose activations are kept at once: from forward to the end
  // of backward, or of backward_weight.
  std::vector<int64_t> most_in_flight = {};
  int64_t chunks = 1;  // of each rank

  double idle_share() const;  // of the time of all ranks: the bubble
};

// ContractError where something is wrong between the orders.
PipelineTimeline timeline(const std::vector<PipelineOrder>& orders, const PipelineCosts& costs = {});

// What keeps the orders ([rank]) from being a step, by stage and action: one that is missing, comes twice or
// before what it needs on its own stage, or a deadlock; one line. Empty where nothing does. How many
// micro-batches and chunks there are is what the orders mention.
std::string wrong_between(const std::vector<PipelineOrder>& orders);

}  // namespace shardmark::strategies
