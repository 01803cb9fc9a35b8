// Records when the instructions of some steps begin and end on this rank. The phases of a step, the times of
// its blocks and traces are all derived from it.
#pragma once

#include <array>
#include <vector>

#include "comm/host_group.h"
#include "device/timeline.h"
#include "strategies/step_trace.h"

namespace shardmark {

using strategies::kNumPhases;
using strategies::Phase;

// The computing thread (or stream) does one thing at a time, so that the spans of a step add up to its
// duration.
struct RecordedStep {
  struct Span {                                  // from one mark to the next
    const strategies::Instruction* instruction;  // nullptr: exposed communication
    specs::Dimension dimension;                  // of exposed communication
    strategies::TimedInstruction time;
    double seconds() const { return time.end_s - time.begin_s; }
  };
  const strategies::Program* program;
  std::vector<Span> spans;

  std::array<double, kNumPhases> phases() const;
  std::array<double, specs::kNumDimensions> exposed() const;  // phase `exposed`, by what is waited for
  double seconds() const { return spans.empty() ? 0 : spans.back().time.end_s - spans.front().time.begin_s; }
};

class StepRecorder {
 public:
  // Which instructions are marked; each mark costs an event on a GPU: those with which a phase begins, those
  // that compute, or all. With all, the memory in use is read at each one that computes.
  enum class Detail { phases, blocks, instructions };
  explicit StepRecorder(at::Device device, Detail detail = Detail::phases)
      : timeline_(device), detail_(detail) {}

  void begin_step(const strategies::Program& program);  // the program must outlive this
  void begin_instruction(size_t i);
  // Ends the last step. Other steps end where the next one begins.
  void end() { timeline_.mark(Timeline::kNothing); }
  // The timeline in which communicators mark exposed communication.
  Timeline& timeline() { return timeline_; }

  // The steps since the last call. With Detail::instructions, times are those of this node's monotonic clock.
  // Waits for the device.
  std::vector<RecordedStep> take();

 private:
  struct Begun {
    const strategies::Program* program;
    size_t first_mark;
  };
  Timeline timeline_;
  Detail detail_;
  double began_s_ = 0;  // by the host's clock, at the first mark
  std::vector<Begun> steps_;
  std::vector<double> memory_bytes_;  // [mark], with Detail::instructions
};

// The time of each block of the whole model on this rank, together with what follows it until the next block:
// medians over steps and micro-batches, in the order of the series "block_time" (schema/fields.h).
std::vector<double> block_medians(const std::vector<RecordedStep>& steps, size_t num_blocks);
// The same for the part of each block's backward that computes the gradients of parameters (series
// "parameter_backward_time"). Empty if the schedule does not split backward.
std::vector<double> parameter_medians(const std::vector<RecordedStep>& steps, size_t num_blocks);

// The seconds to add to this rank's clock to get rank 0's, as the median of several rounds. error_s is half
// the interquartile range of the rounds. Ranks on rank 0's node share its clock. Collective.
struct ClockOffset {
  double seconds = 0, error_s = 0;
};
ClockOffset clock_offset(const HostGroup& group);

// Rank 0 writes what all ranks have recorded, with Detail::instructions, to `path`. Only the first 64 ranks
// are written. Returns why it failed, or an empty text, on all ranks. Collective.
std::string write_trace(const HostGroup& group, const specs::ModelTable& model, StepRecorder& recorder,
                        const std::string& title, const std::string& path);

}  // namespace shardmark
