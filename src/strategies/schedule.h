// What a rank computes in a step, and in which order: nothing of memory, nothing of communication. What a
// strategy holds looks at its position in the order: which groups of parameters it uses there for the first
// time, which gradients begin or are complete.
#pragma once

#include <optional>
#include <vector>

#include "specs/model_table.h"

namespace shardmark::strategies {

enum class Compute { load, forward, recompute, backward };

struct Action {
  Compute what = Compute::load;
  int64_t block = 0;
  int64_t micro_batch = 0;
  bool keeps_activations = false;  // of a forward or recompute: a backward follows from them
};
using Schedule = std::vector<Action>;

// Forward and backward of one micro-batch after the other. Every n-th block is computed again before its
// backward (recompute: n; 0: none), but for the last one, whose backward follows its forward at once.
Schedule accumulate(int64_t num_blocks, int64_t micro_batches, int64_t recompute = 0);
// Forward of one micro-batch alone: an evaluation.
Schedule forward_only(int64_t num_blocks);

struct Position {
  Action action;
  std::optional<size_t> unit;      // the group that this block alone uses
  std::vector<size_t> first_used;  // groups that the step uses here for the first time
  // Of a backward: groups whose gradients of this micro-batch begin here, and those that are complete after
  // it; whether it is the block's first one, and the last.
  std::vector<size_t> begin, complete;
  bool is_first = false, is_last = false;

  bool is(Compute what) const { return action.what == what; }
  bool uses_unit() const { return unit && action.what != Compute::load; }
};
std::vector<Position> positions(const Schedule& schedule, const specs::ModelTable& model);

}  // namespace shardmark::strategies
