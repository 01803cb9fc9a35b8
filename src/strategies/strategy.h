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
  const ModelTable& model;  // the part of it that the rank has
  int64_t ranks;            // that have the same part, and other samples
  int64_t accumulation;     // micro-batches
  specs::ElementBytes bytes;
  int64_t optimizer_elements;             // state elements per parameter: sgd 0, sgd with momentum 1, adamw 2
  Options options;                        // of the strategy, resolved
  bool norm = false;                      // every step asks for the gradient's norm: clipping, fp16
  int64_t rank = 0;                       // of the job, whose program it is
  int64_t recompute = 0;                  // every n-th block is computed again in backward; 0: none
  bool masks_documents = false;           // of packed samples, by a mask of T x T scores
  specs::Mesh mesh = {};                  // of the job; its copies are `ranks`
  std::vector<specs::Chunk> chunks = {};  // of the model's blocks; none: all in one
  std::string order = "1f1b";             // a pipeline schedule
  int64_t samples = 0;                    // of a micro-batch
  bool own_gathers = false;               // parameters are gathered in a communicator of their own
  bool fused_update = false;              // one pass: Note [Update in one pass] (replica.h)

  Team all() const { return team(ranks); }
  // Of neighbours among those that have the same part of the model.
  Team team(int64_t size) const { return {size, mesh.copies().stride}; }
  Stage stage() const;
  std::vector<specs::Chunk> all_chunks() const;
  StepInput with(const ModelTable& regrouped) const;  // the same of the same blocks, in other groups
  Schedule schedule() const {                         // of a step
    return by_blocks(pipeline_schedule(order).order(stage(), accumulation), all_chunks(), recompute);
  }
};

// The step of a rank of a training point, every choice resolved.
class RankStep {
 public:
  explicit RankStep(const Point& point, int64_t rank = 0);
  RankStep(const Point& point, int64_t rank, const std::vector<int64_t>& bounds);  // bounds_of_parts()
  const specs::StageTable& part() const { return part_; }
  const StepInput& input() const { return input_; }

 private:
  specs::StageTable part_;
  StepInput input_;
};
specs::Split split_of(const Point& point, int64_t rank = 0);
// Where the parts of the model begin that the stages of a pipeline have.
std::vector<int64_t> bounds_of_parts(const Point& point);
// Why a model cannot be laid out like this, or its step is too long to be written; empty where it can.
std::string layout_impossible(const Point& point);
// Why a layout that is possible cannot be where the transport serves operations in this order; empty where it
// can.
std::string serving_impossible(const Point& point, Serving serving);
// What is most likely not meant: fewer micro-batches than stages. One line; empty where nothing is.
std::string layout_warning(const Point& point);

// Bytes on the rank that has most; traffic is the mean over ranks, of one step.
struct Cost {
  double parameter_bytes = 0;  // persistent
  double gradient_bytes = 0;
  double optimizer_bytes = 0;
  double transient_bytes = 0;  // slots for gathered parameters and for gradients on their way
  double offloaded_bytes = 0;  // in host memory, beside the device's
  double traffic_bytes = 0;    // ring bytes: payload x ring factor
  int64_t num_operations = 0;  // collectives started per step, on each rank

  double state_bytes() const { return parameter_bytes + gradient_bytes + optimizer_bytes + transient_bytes; }
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
  Program evaluation(const StepInput& input) const { return write(input, forward_only(input.all_chunks())); }
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
