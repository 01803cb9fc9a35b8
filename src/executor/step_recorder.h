// When the instructions of some steps began and ended, on this rank: the phases of a step, the times of its
// blocks, and traces are readings of it.
#pragma once

#include <array>
#include <vector>

#include "comm/host_group.h"
#include "device/timeline.h"
#include "strategies/step_trace.h"

namespace shardmark {

using strategies::kNumPhases;
using strategies::Phase;

// The computing thread (or stream) is at one thing at any moment, so what a step consists of adds up to it.
struct RecordedStep {
  struct Span {                                  // from one mark to the next
    const strategies::Instruction* instruction;  // nullptr: exposed communication,
    specs::Dimension dimension;                  // of this one
    strategies::TimedInstruction time;
    double seconds() const { return time.end_s - time.begin_s; }
  };
  const strategies::Program* program;
  std::vector<Span> spans;

  std::array<double, kNumPhases> phases() const;
  std::array<double, specs::kNumDimensions> exposed() const;  // phase exposed by what is waited for
  double seconds() const { return spans.empty() ? 0 : spans.back().time.end_s - spans.front().time.begin_s; }
};

class StepRecorder {
 public:
  // The instructions that are marked, which costs an event each on a GPU: those with which a phase begins,
  // those that compute, or all; with all, memory is read where one computes.
  enum class Detail { phases, blocks, instructions };
  explicit StepRecorder(at::Device device, Detail detail = Detail::phases)
      : timeline_(device), detail_(detail) {}

  void begin_step(const strategies::Program& program);  // which must outlive this
  void begin_instruction(size_t i);
  void end() { timeline_.mark(Timeline::kNothing); }  // of the last step; it ends where the next begins, else
  Timeline& timeline() { return timeline_; }          // where a communicator marks exposed communication

  // The steps since the last call; of Detail::instructions in seconds of this node's monotonic clock. Waits
  // for the device.
  std::vector<RecordedStep> take();

 private:
  struct Begun {
    const strategies::Program* program;
    size_t first_mark;
  };
  Timeline timeline_;
  Detail detail_;
  double began_s_ = 0;  // by the host's clock: the first mark
  std::vector<Begun> steps_;
  std::vector<double> memory_bytes_;  // [mark], with Detail::instructions
};

// How long each block of the whole model computes on this rank, with what follows it until the next one:
// medians over the steps, all micro-batches alike, as laid out in series "block_time" (schema/fields.h).
std::vector<double> block_medians(const std::vector<RecordedStep>& steps, size_t num_blocks);
// The same of what splits off each block's backward for the gradients of its parameters (series
// "parameter_backward_time"); nothing where the schedule does not split it.
std::vector<double> parameter_medians(const std::vector<RecordedStep>& steps, size_t num_blocks);

// Seconds to add to this rank's clock so that it is rank 0's; ranks on rank 0's node share its clock.
// error_s: half the range in which other ranks' answers lay. Collective.
struct ClockOffset {
  double seconds = 0, error_s = 0;
};
ClockOffset clock_offset(const HostGroup& group);

// Writes what all ranks recorded, with Detail::instructions, to `path`, as rank 0, which says why not where
// that fails; the first 64 ranks of many. Collective; the same answer on all ranks.
std::string write_trace(const HostGroup& group, const specs::ModelTable& model, StepRecorder& recorder,
                        const std::string& title, const std::string& path);

}  // namespace shardmark
