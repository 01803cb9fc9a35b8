// Plays the schedules of all ranks of a pipeline together: says why they are invalid, and how long they take
// for given costs. The rules are those of the data: forward of part k needs forward of part k - 1; backward
// (or backward_input) of part k needs that of part k + 1 and its own forward; backward_weight needs its own
// backward_input; all for the same micro-batch.
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline.h"

namespace shardmark::strategies {

// The seconds that each pass through a part of the model takes.
struct PassCosts {
  double forward_s = 1, backward_s = 2, backward_input_s = 1, backward_weight_s = 1;

  double of(Pass pass) const;
};

struct PipelineCosts {
  PassCosts all = {};                                  // of every part, unless of_chunks is given
  std::vector<std::vector<PassCosts>> of_chunks = {};  // [rank][chunk]
  // From the end of one part until its message lets the next part begin on another rank.
  double latency_s = 0;

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
  std::vector<double> idle_s = {};              // [rank]: length_s without the time of its actions
  // [rank]: the most pairs of chunk and micro-batch whose activations are kept at once. They are kept from
  // forward to the end of backward, or of backward_weight.
  std::vector<int64_t> most_in_flight = {};
  int64_t chunks = 1;  // on each rank

  double idle_share() const;  // the bubble, as a share of the time of all ranks
};

// Throws ContractError if the orders are invalid (wrong_between()).
PipelineTimeline timeline(const std::vector<PipelineOrder>& orders, const PipelineCosts& costs = {},
                          Placement placement = Placement::loop);

// Why the orders ([rank]) are not a valid step, in one line that names stage and action: an action is
// missing, comes twice or comes before another that it needs on its own stage, or ranks deadlock. Empty if
// they are valid. The numbers of micro-batches and chunks are taken from the orders.
std::string wrong_between(const std::vector<PipelineOrder>& orders, Placement placement = Placement::loop);

}  // namespace shardmark::strategies
