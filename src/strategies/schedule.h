// What a rank computes in a step, and in which order, without any memory or communication. Strategies look at
// each position of this order: which groups of parameters it uses for the first time in the step, which
// gradients begin there, and which are complete afterwards.
#pragma once

#include <vector>

#include "specs/stages.h"
#include "strategies/pipeline.h"

namespace shardmark::strategies {

// backward computes all gradients of a block; backward_input only that of its input, and backward_weight
// those of its parameters, later.
enum class Compute { load, forward, recompute, backward, backward_input, backward_weight };

struct Action {
  Compute what = Compute::load;
  int64_t block = 0;
  int64_t micro_batch = 0;
  bool keeps_activations = false;  // a forward or recompute that a backward follows
};
using Schedule = std::vector<Action>;

// Expands a pipeline schedule of chunks into one of blocks. A micro-batch is loaded before its first chunk.
// Every n-th block of the model (`recompute`; 0: none) is computed again before its backward. The exception
// is the last block of a chunk whose backward follows its forward at once: its activations are kept.
Schedule by_blocks(const PipelineOrder& order, const std::vector<specs::Chunk>& chunks, int64_t recompute);
// Forward of one micro-batch alone, as an evaluation computes it.
Schedule forward_only(const std::vector<specs::Chunk>& chunks);

struct Position {
  Action action;
  std::vector<size_t> units;       // the groups that only this block uses; two if ranks share its experts
  std::vector<size_t> first_used;  // groups that the step uses here for the first time
  // For a backward: the groups whose gradients of this micro-batch begin here, and those that are complete
  // after it; and whether this is the block's first or last backward of the step.
  std::vector<size_t> begin, complete;
  bool is_first = false, is_last = false;

  bool is(Compute what) const { return action.what == what; }
  // Whether the position reads the parameters of its units. backward_weight computes their gradients without
  // them.
  bool uses_units() const { return !units.empty() && !is(Compute::load) && !is(Compute::backward_weight); }
  bool adds_gradients() const { return is(Compute::backward) || is(Compute::backward_weight); }
};
std::vector<Position> positions(const Schedule& schedule, const specs::ModelTable& model);

}  // namespace shardmark::strategies
