// When each instruction of some steps began and ended, on this rank.
#pragma once

#include <vector>

#include "comm/host_group.h"
#include "device/timeline.h"
#include "strategies/step_trace.h"

namespace shardmark {

class StepRecorder {
 public:
  explicit StepRecorder(at::Device device);

  void begin_step(const strategies::Program& program);  // which must outlive this
  void begin_instruction(bool reads_memory);            // which ends the one before
  void end_step();
  // The steps so far, in seconds of this node's monotonic clock. Waits for the device.
  std::vector<strategies::TimedStep> take();

 private:
  Timeline timeline_;
  double began_s_ = 0;                                // by the host's clock: the first mark
  std::vector<const strategies::Program*> programs_;  // [step]
  std::vector<double> memory_bytes_;                  // parallel to the marks; infinite where a step ends
};

// Seconds to add to this rank's clock so that it is rank 0's; ranks on rank 0's node share its clock.
// error_s: half the range in which other ranks' answers lay. Collective.
struct ClockOffset {
  double seconds = 0, error_s = 0;
};
ClockOffset clock_offset(const HostGroup& group);

// Writes what all ranks recorded to `path`, as rank 0, which says why not where that fails; the first 64
// ranks of many. Collective; the same answer on all ranks.
std::string write_trace(const HostGroup& group, const specs::ModelTable& model, StepRecorder& recorder,
                        const std::string& title, const std::string& path);

}  // namespace shardmark
