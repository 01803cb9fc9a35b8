// What a rank computes in a step, and in which order: nothing of memory, nothing of communication. What a
// strategy holds looks at its position in the order: which groups of parameters it uses there for the first
// time, which gradients begin or are complete.
#pragma once

#include <optional>
#include <vector>

#include "specs/stages.h"
#include "strategies/pipeline.h"

namespace shardmark::strategies {

// The last two are backward in two parts: the gradient of the block's input, those of its parameters.
enum class Compute { load, forward, recompute, backward, backward_input, backward_weight };

struct Action {
  Compute what = Compute::load;
  int64_t block = 0;
  int64_t micro_batch = 0;
  bool keeps_activations = false;  // of a forward or recompute: a backward follows from them
};
using Schedule = std::vector<Action>;

// What an order of chunks means for their blocks. A micro-batch is loaded before its first chunk. Every n-th
// block of the model is computed again before its backward (recompute: n; 0: none), but for a chunk's last
// one whose backward follows its forward at once.
Schedule by_blocks(const PipelineOrder& order, const std::vector<specs::Chunk>& chunks, int64_t recompute);
// Forward of one micro-batch alone: an evaluation.
Schedule forward_only(const std::vector<specs::Chunk>& chunks);

struct Position {
  Action action;
  std::optional<size_t> unit;      // the group that this block alone uses
  std::vector<size_t> first_used;  // groups that the step uses here for the first time
  // Of a backward: groups whose gradients of this micro-batch begin here, and those that are complete after
  // it; whether it is the block's first one, and the last.
  std::vector<size_t> begin, complete;
  bool is_first = false, is_last = false;

  bool is(Compute what) const { return action.what == what; }
  // Its parameters are read: not by their own gradient.
  bool uses_unit() const { return unit && !is(Compute::load) && !is(Compute::backward_weight); }
  bool adds_gradients() const { return is(Compute::backward) || is(Compute::backward_weight); }
};
std::vector<Position> positions(const Schedule& schedule, const specs::ModelTable& model);

}  // namespace shardmark::strategies
