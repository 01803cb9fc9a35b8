// What a pipeline schedule is: the order in which a rank that holds parts of the model passes micro-batches
// through them. Nothing of memory, nothing of communication: what an action needs from other ranks follows
// from the order of parts (pipeline_timeline.h). Registered by src/strategies/schedules/<name>.cpp.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"
#include "schema/choice.h"

namespace shardmark::strategies {

// Where a rank stands in a pipeline: `index` of `count` ranks, each of which has `chunks` parts of the model.
// Parts go round the ranks: micro-batches pass through part 0, 1, 2 ... forward, and back again.
struct Stage {
  int64_t index = 0, count = 1, chunks = 1;

  int64_t part(int64_t chunk) const { return chunk * count + index; }
  int64_t num_parts() const { return chunks * count; }
  bool operator==(const Stage&) const = default;
};

// backward is backward_input and backward_weight at once. Apart, the gradient of the part's input goes on to
// the rank before, which waits for it; gradients of parameters, for which nobody waits, may come later.
enum class Pass { forward, backward, backward_input, backward_weight };

struct PipelineAction {
  Pass pass = Pass::forward;
  int64_t chunk = 0, micro_batch = 0;

  bool operator==(const PipelineAction&) const = default;
};
using PipelineOrder = std::vector<PipelineAction>;  // of one rank, in a step

// In which order a transport serves operations of several communicators (serving.h), the strictest last.
enum class Serving { own, launch_order, serial };

struct PipelineSchedule {
  std::string description;
  OptionTable options;
  // Every chunk adds the gradients of micro-batches 0, 1, 2 ... in this order, so that the sums are those of
  // plain accumulation, bit for bit. Any number of micro-batches from 1 on, and of ranks.
  PipelineOrder (*order)(const Stage& stage, int64_t micro_batches);
  // Parts of the model that a rank has.
  int64_t (*chunks)(const Options& options) = [](const Options&) { return int64_t{1}; };
  // Why it cannot be, and what can: one line; empty where it can.
  std::string (*impossible)(const Stage& stage, int64_t micro_batches) = [](const Stage&, int64_t) {
    return std::string();
  };

  // The orders of all ranks of a pipeline.
  std::vector<PipelineOrder> orders(int64_t count, int64_t chunks, int64_t micro_batches) const {
    std::vector<PipelineOrder> all;
    for (int64_t index = 0; index < count; ++index)
      all.push_back(order({index, count, chunks}, micro_batches));
    return all;
  }
};

inline const PipelineSchedule& pipeline_schedule(const std::string& name) {
  return Registry<PipelineSchedule>::instance().get(name, "pipeline schedule");
}
// The schedules as a kind of choice.
const ChoiceKind& pipeline_schedule_kind();

// "forward of micro-batch 3"; with several chunks "forward of micro-batch 3 through chunk 1".
std::string describe(const PipelineAction& action, int64_t chunks);

}  // namespace shardmark::strategies
