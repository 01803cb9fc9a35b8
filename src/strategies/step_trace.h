// Steps as timelines in Chrome's trace format, which Perfetto and chrome://tracing show. Measured and
// predicted steps use the same format, so that they can be shown side by side.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// The phases that a step's time is divided into, as traces and studies name them. exposed: computation waits
// for communication.
enum class Phase { data, forward, backward, exposed, optimizer };
inline constexpr std::array kPhaseNames = {"data", "forward", "backward", "exposed", "optimizer"};
inline constexpr size_t kNumPhases = kPhaseNames.size();
Phase phase_of(StepPart part);

// When an instruction of a program ran, in seconds from the beginning of the trace.
struct TimedInstruction {
  double begin_s = 0, end_s = 0;
  double memory_bytes = std::nan("");  // in use when it began
};
struct TimedStep {
  const Program* program = nullptr;
  std::vector<TimedInstruction> times;  // [instruction]
};

// The events of one rank, as JSON objects separated by commas. One track has what computes, waits or works
// locally, and another one the phases. Calls in flight last from their start to the end of the wait for them,
// and carry bytes, dimension and algorithm bandwidth. Memory is a counter. With a pipeline, the rank's name
// is followed by the blocks of its stage. A call that one step leaves in flight ends in the next one.
std::string trace_events(const ModelTable& model, int64_t rank, const std::string& rank_name,
                         const std::vector<TimedStep>& steps);

// The whole file. `about` has pairs of name and text, which are shown as metadata.
std::string trace_file(const std::vector<std::string>& events_of_ranks,
                       const std::vector<std::pair<std::string, std::string>>& about);

}  // namespace shardmark::strategies
