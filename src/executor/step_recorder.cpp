// Marks between instructions, clocks of several nodes, one file for all ranks.
#include "executor/step_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/node.h"
#include "base/stats.h"
#include "device/device.h"
#include "device/meter.h"
#include "schema/file.h"

namespace shardmark {
namespace {

constexpr double kEndOfStep = std::numeric_limits<double>::infinity();
constexpr int64_t kMostRanks = 64;  // in one file: viewers take no more

}  // namespace

StepRecorder::StepRecorder(at::Device device) : timeline_(device) {}

void StepRecorder::begin_step(const strategies::Program& program) {
  if (programs_.empty()) {
    synchronize(timeline_.device());  // so that the host's clock says when the device passes the first mark
    began_s_ = now_s();
  }
  programs_.push_back(&program);
}

void StepRecorder::begin_instruction(bool reads_memory) {
  timeline_.mark();
  memory_bytes_.push_back(reads_memory ? static_cast<double>(meter::read().total) : std::nan(""));
}

void StepRecorder::end_step() {
  timeline_.mark();
  memory_bytes_.push_back(kEndOfStep);
}

std::vector<strategies::TimedStep> StepRecorder::take() {
  const std::vector<double> times = timeline_.resolve();
  std::vector<strategies::TimedStep> steps;
  for (const strategies::Program* program : programs_) steps.push_back({program, {}});
  for (size_t i = 0, step = 0; i + 1 < times.size(); ++i) {
    if (memory_bytes_[i] == kEndOfStep)
      ++step;
    else
      steps[step].times.push_back({began_s_ + times[i], began_s_ + times[i + 1], memory_bytes_[i]});
  }
  programs_.clear();
  memory_bytes_.clear();
  return steps;
}

ClockOffset clock_offset(const HostGroup& group) {
  constexpr int kRounds = 16;
  const bool shares_clock = group.first_rank_on_node() == 0;
  std::vector<double> offsets;
  for (int round = 0; round < kRounds; ++round) {
    group.barrier();
    const double own = now_s();
    offsets.push_back(group.max(group.rank() == 0 ? own : -std::numeric_limits<double>::infinity()) - own);
  }
  std::sort(offsets.begin(), offsets.end());
  const double error_s = (offsets[3 * kRounds / 4] - offsets[kRounds / 4]) / 2;
  if (shares_clock) return {};
  return {median(offsets), error_s};
}

std::string write_trace(const HostGroup& group, const specs::ModelTable& model, StepRecorder& recorder,
                        const std::string& title, const std::string& path) {
  auto steps = recorder.take();
  const ClockOffset clock = clock_offset(group);
  const double first_s = steps.front().times.front().begin_s + clock.seconds;
  const double origin_s = -group.max(-first_s);
  for (auto& step : steps)
    for (auto& instruction : step.times) {
      instruction.begin_s += clock.seconds - origin_s;
      instruction.end_s += clock.seconds - origin_s;
    }
  const double error_s = group.max(clock.error_s);
  const std::string events =
      group.rank() >= kMostRanks
          ? ""
          : strategies::trace_events(model, group.rank(),
                                     fmt::format("rank {} on {}", group.rank(), host_name()), steps);
  const std::vector<std::string> all = group.gather(events);
  std::string trouble;
  if (group.rank() == 0) {
    const std::string aligned = error_s == 0 ? "all ranks on one node, one clock"
                                             : fmt::format("between nodes within {:.0f} us", error_s * 1e6);
    try {
      const std::string text = strategies::trace_file(all, {{"step", title}, {"clocks", aligned}});
      write_whole(path, "name another directory: --trace DIR", [&](std::ostream& out) { out << text; });
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  }
  return group.broadcast(trouble, 0);
}

}  // namespace shardmark
