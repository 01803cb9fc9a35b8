// A pipeline schedule says in which order a rank passes micro-batches through its parts of the model. It says
// nothing of memory or communication: what an action needs from other ranks follows from the order of the
// parts (pipeline_timeline.h). Registered by src/strategies/schedules/<name>.cpp.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"
#include "schema/choice.h"

namespace shardmark::strategies {

// Which ranks have the parts of the model. loop: parts go round the ranks, so that rank 0 has the first part
// after the last rank's. v: they go there and back, so that the last rank has the next one itself, and rank 0
// has the first and the last part.
enum class Placement { loop, v };

// A rank's place in a pipeline: it is rank `index` of `count`, and each of these has `chunks` parts of the
// model. A micro-batch passes through parts 0, 1, 2 ... forward, and back again.
struct Stage {
  int64_t index = 0, count = 1, chunks = 1;
  Placement placement = Placement::loop;

  int64_t part(int64_t chunk) const { return chunk * count + place(index, chunk); }
  std::vector<int64_t> parts() const {
    std::vector<int64_t> all;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) all.push_back(part(chunk));
    return all;
  }
  int64_t num_parts() const { return chunks * count; }
  int64_t rank_of(int64_t part) const { return place(part % count, part / count); }
  bool operator==(const Stage&) const = default;

 private:
  // Converts the index of a rank to its part's place among those of a chunk, and back.
  int64_t place(int64_t of, int64_t chunk) const {
    return placement == Placement::v && chunk % 2 == 1 ? count - 1 - of : of;
  }
};

// backward is backward_input and backward_weight at once. If they are apart, backward_input computes the
// gradient of the part's input, which the previous rank waits for, and backward_weight later computes the
// gradients of parameters, which nobody waits for.
enum class Pass { forward, backward, backward_input, backward_weight };

struct PipelineAction {
  Pass pass = Pass::forward;
  int64_t chunk = 0, micro_batch = 0;

  bool operator==(const PipelineAction&) const = default;
};
using PipelineOrder = std::vector<PipelineAction>;  // of one rank, in one step

// How a transport orders operations of several communicators (serving.h), the strictest last.
enum class Serving { own, launch_order, serial };

struct PipelineSchedule {
  std::string description;
  OptionTable options;
  // The actions of one rank, for any number of ranks and of micro-batches from 1 on. Every chunk must add the
  // gradients of micro-batches in the order 0, 1, 2 ..., so that the sums equal those of plain gradient
  // accumulation bit for bit, and those of a micro-batch in the order of backward, from the last chunk to the
  // first.
  PipelineOrder (*order)(const Stage& stage, int64_t micro_batches);
  // The number of parts of the model on each rank.
  int64_t (*chunks)(const Options& options) = [](const Options&) { return int64_t{1}; };
  // Why the schedule does not work with this stage and number of micro-batches, and what does, in one line.
  // Empty if it works.
  std::string (*impossible)(const Stage& stage, int64_t micro_batches) = [](const Stage&, int64_t) {
    return std::string();
  };

  Placement placement = Placement::loop;

  // The orders of all ranks of a pipeline: [rank].
  std::vector<PipelineOrder> orders(int64_t count, int64_t chunks, int64_t micro_batches) const {
    std::vector<PipelineOrder> all;
    for (int64_t index = 0; index < count; ++index)
      all.push_back(order({index, count, chunks, placement}, micro_batches));
    return all;
  }
};

inline const PipelineSchedule& pipeline_schedule(const std::string& name) {
  return Registry<PipelineSchedule>::instance().get(name, "pipeline schedule");
}
// The registered schedules, as what the axis can be chosen from.
const ChoiceKind& pipeline_schedule_kind();

// "forward of micro-batch 3"; with several chunks "forward of micro-batch 3 through chunk 1".
std::string describe(const PipelineAction& action, int64_t chunks);

}  // namespace shardmark::strategies
