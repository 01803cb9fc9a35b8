// Steps as timelines in Chrome's trace format, which Perfetto and chrome://tracing show: measured and
// predicted ones alike, so that the two lie side by side in one viewer.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Where the time of a step goes, as traces and studies name it. exposed: computing waits for communication.
enum class Phase { data, forward, backward, exposed, optimizer };
inline constexpr std::array kPhaseNames = {"data", "forward", "backward", "exposed", "optimizer"};
inline constexpr size_t kNumPhases = kPhaseNames.size();
Phase phase_of(Part part);

// An instruction of a program as it happened: seconds from the beginning of the trace.
struct TimedInstruction {
  double begin_s = 0, end_s = 0;
  double memory_bytes = std::nan("");  // in use when it began
};
struct TimedStep {
  const Program* program = nullptr;
  std::vector<TimedInstruction> times;  // [instruction]
};

// The events of a rank, JSON objects separated by commas: what computes, waits and works locally on one
// track, phases on another; calls in flight, from their start to the end of the wait for them, with bytes,
// dimension and algorithm bandwidth; memory as a counter. Of a pipeline the blocks of its stage stand beside
// its name. A call that a step leaves in flight is the next one's.
std::string trace_events(const ModelTable& model, int64_t rank, const std::string& rank_name,
                         const std::vector<TimedStep>& steps);

// The whole file. about: shown as metadata, pairs of name and text.
std::string trace_file(const std::vector<std::string>& events_of_ranks,
                       const std::vector<std::pair<std::string, std::string>>& about);

}  // namespace shardmark::strategies
