// A strategy has options and writes the program of a step. Everything else follows from the program: what a
// rank executes, what a step costs, and how long it takes. Registered by src/strategies/<name>.cpp.
#pragma once

#include "base/registry.h"
#include "schema/point.h"
#include "specs/element_bytes.h"
#include "strategies/program.h"
#include "strategies/schedule.h"

namespace shardmark::strategies {

// What a strategy needs to know to write a step. `model` must outlive the input.
struct StepInput {
  const ModelTable& model;  // the part of the model that this rank has
  int64_t ranks;            // ranks that have the same part of the model, with other samples
  int64_t accumulation;     // micro-batches per step
  specs::ElementBytes bytes;
  int64_t optimizer_elements;             // state elements per parameter: sgd 0, sgd with momentum 1, adamw 2
  Options options;                        // of the strategy, resolved
  bool norm = false;                      // every step computes the gradient norm (for clipping or fp16)
  int64_t rank = 0;                       // of the job; the program is this rank's
  int64_t recompute = 0;                  // every n-th block is recomputed in backward; 0: none
  bool masks_documents = false;           // packed samples, whose attention uses a T x T mask for each
  specs::Mesh mesh = {};                  // of the job; its copies() are the `ranks` above
  std::vector<specs::Chunk> chunks = {};  // of this rank's blocks; empty: all blocks in one chunk
  std::string order = "1f1b";             // name of the pipeline schedule
  int64_t samples = 0;                    // per micro-batch
  bool own_gathers = false;               // parameters are gathered on a communicator of their own
  bool fused_update = false;              // one pass: Note [Update in one pass] (replica.h)
  bool drops_in_context = false;          // dropout on context ranks, whose attention uses one T x T mask
  double code_bytes = 0;  // of an element that linear layers keep in fp8; 0: they multiply in their type

  ProcessGroup all() const { return process_group(ranks); }
  // Process groups of `size` neighbours each, among the ranks that have the same part of the model.
  ProcessGroup process_group(int64_t size) const { return {size, mesh.copies().stride}; }
  // The ranks that shard a copy of the model, if they are `size` neighbours.
  specs::ShardingRanks sharded_over(int64_t size) const {
    return {process_group(size), mesh.expert_copies_among(size)};
  }
  Stage stage() const;
  std::vector<specs::Chunk> all_chunks() const;
  StepInput with(const ModelTable& regrouped) const;  // the same blocks, with parameters in other groups
  Schedule schedule() const {                         // of one training step
    return by_blocks(pipeline_schedule(order).order(stage(), accumulation), all_chunks(), recompute);
  }
};

// The step of one rank for a training point whose choices are all resolved. `bounds` are those of
// bounds_of_parts().
class RankStep {
 public:
  explicit RankStep(const Point& point, int64_t rank = 0);
  RankStep(const Point& point, int64_t rank, const std::vector<int64_t>& bounds);
  const specs::StageTable& part() const { return part_; }
  const StepInput& input() const { return input_; }

 private:
  specs::StageTable part_;
  StepInput input_;
};
specs::Split split_of(const Point& point, int64_t rank = 0);
// The index of the first block of each part of the model that pipeline stages hold, and the number of blocks.
std::vector<int64_t> bounds_of_parts(const Point& point);
// Why the model cannot be laid out like this, or why its step is too long to be written. Empty if it can.
std::string layout_impossible(const Point& point);
// Why a layout that is possible deadlocks on a transport that serves operations in this way. Empty if it does
// not.
std::string serving_impossible(const Point& point, Serving serving);
// A warning, in one line, about fewer micro-batches than stages, which is most likely a mistake. Empty if
// there is nothing to warn about.
std::string layout_warning(const Point& point);

// The memory of the rank that needs most, in bytes, and the traffic of one step as the mean over ranks.
struct Cost {
  double parameter_bytes = 0;  // persistent
  double gradient_bytes = 0;
  double optimizer_bytes = 0;
  double transient_bytes = 0;  // slots for gathered parameters and for gradients in transit
  double offloaded_bytes = 0;  // in host memory, in addition to the device's
  double traffic_bytes = 0;    // ring bytes: payload x ring factor
  int64_t num_operations = 0;  // collectives started per step, on each rank

  double state_bytes() const { return parameter_bytes + gradient_bytes + optimizer_bytes + transient_bytes; }
};

struct Strategy {
  std::string description;
  OptionTable options;
  // Writes the program for a schedule. An evaluation's program uses the same memory as a training step's.
  Program (*write)(const StepInput& input, const Schedule& schedule);
  // What the strategy costs by the formula of its paper (strategies/paper.h), without padding, and without a
  // count of operations. NaN where the paper gives no formula.
  Cost (*paper)(const StepInput& input);
  // Why these options do not work with this precision, model or number of ranks. Empty if they do.
  std::string (*impossible)(const StepInput& input) = [](const StepInput&) { return std::string(); };

  Program step(const StepInput& input) const { return write(input, input.schedule()); }
  Program evaluation(const StepInput& input) const { return write(input, forward_only(input.all_chunks())); }
};

inline const Strategy& strategy(const std::string& name) {
  return Registry<Strategy>::instance().get(name, "strategy");
}

// Adds up a program's buffers and calls. Padding (specs/layout.h) is included, so that the numbers equal what
// is allocated.
Cost cost_of(const Program& program, const StepInput& input);
inline Cost cost_of(const std::string& name, const StepInput& input) {
  return cost_of(strategy(name).step(input), input);
}

}  // namespace shardmark::strategies
