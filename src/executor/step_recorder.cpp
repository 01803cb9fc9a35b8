// Marks where instructions begin, turns marks into spans of time, and aligns the clocks of several nodes for
// a trace of all ranks.
#include "executor/step_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/node.h"
#include "base/stats.h"
#include "device/device.h"
#include "device/meter.h"
#include "schema/file.h"

namespace shardmark {

using strategies::Instruction;
using What = Instruction::What;

namespace {

constexpr int64_t kMostRanks = 64;  // in one file, because viewers show no more

// The index of an instruction's time in the series "block_time". Recomputation counts as part of the backward
// that needs it.
size_t place_of(const strategies::Program& program, const Instruction& instruction, size_t num_blocks) {
  const auto block = static_cast<size_t>(program.block_of_model(instruction.index));
  return instruction.what == What::data      ? 0
         : instruction.what == What::forward ? 1 + block
         : instruction.what == What::update  ? 1 + 2 * num_blocks
                                             : 1 + num_blocks + block;
}

}  // namespace

std::array<double, kNumPhases> RecordedStep::phases() const {
  std::array<double, kNumPhases> seconds = {};
  for (const Span& span : spans) {
    const Phase phase = span.instruction == nullptr ? Phase::exposed : phase_of(span.instruction->part);
    seconds[static_cast<size_t>(phase)] += span.seconds();
  }
  return seconds;
}

std::array<double, specs::kNumDimensions> RecordedStep::exposed() const {
  std::array<double, specs::kNumDimensions> seconds = {};
  for (const Span& span : spans)
    if (span.instruction == nullptr) seconds[static_cast<size_t>(span.dimension)] += span.seconds();
  return seconds;
}

void StepRecorder::begin_step(const strategies::Program& program) {
  if (detail_ == Detail::instructions && steps_.empty()) {
    // Then the host's clock tells when the device passes the first mark.
    synchronize(timeline_.device());
    began_s_ = now_s();
  }
  steps_.push_back({&program, timeline_.size()});
}

void StepRecorder::begin_instruction(size_t i) {
  const auto& instructions = steps_.back().program->instructions;
  const bool computes = instructions[i].is_compute();
  const bool is_marked =
      i == 0 || detail_ == Detail::instructions ||
      (detail_ == Detail::blocks ? computes
                                 : phase_of(instructions[i].part) != phase_of(instructions[i - 1].part));
  if (!is_marked) return;
  const size_t mark = timeline_.mark(static_cast<int64_t>(i));
  if (detail_ != Detail::instructions) return;
  memory_bytes_.resize(mark, std::nan(""));
  memory_bytes_.push_back(computes ? static_cast<double>(meter::read().total) : std::nan(""));
}

// A span lasts from one mark to the next, whichever step that belongs to. A step ends where the next one
// begins, or at the mark of end(). Marks at or below kExposed are exposed communication, and their distance
// from kExposed is the dimension.
std::vector<RecordedStep> StepRecorder::take() {
  const std::vector<Timeline::Mark> marks = timeline_.resolve();
  memory_bytes_.resize(marks.size(), std::nan(""));
  std::vector<RecordedStep> steps;
  for (size_t step = 0; step < steps_.size(); ++step) {
    const auto& [program, first] = steps_[step];
    auto& spans = steps.emplace_back(program).spans;
    const size_t end = step + 1 < steps_.size() ? steps_[step + 1].first_mark : marks.size() - 1;
    for (size_t i = first; i < end && marks[i].what != Timeline::kNothing; ++i) {
      const bool exposed = marks[i].what <= Timeline::kExposed;
      spans.push_back(
          {exposed ? nullptr : &program->instructions[static_cast<size_t>(marks[i].what)],
           exposed ? specs::Dimension(Timeline::kExposed - marks[i].what) : specs::Dimension::data,
           {began_s_ + marks[i].at_s, began_s_ + marks[i + 1].at_s, memory_bytes_[i]}});
    }
  }
  steps_.clear();
  memory_bytes_.clear();
  return steps;
}

namespace {

// Medians over steps and micro-batches, [place]. `place` gives the place of a computing instruction, or none
// if it does not count. What follows an instruction, until the next one that computes, counts with it.
std::vector<double> medians_by_place(
    const std::vector<RecordedStep>& steps, size_t num_places,
    const std::function<std::optional<size_t>(const strategies::Program&, const Instruction&)>& place) {
  std::vector<std::vector<double>> seconds(num_places);
  for (const RecordedStep& step : steps) {
    std::map<std::pair<size_t, int64_t>, double> of_step;  // by (place, micro-batch)
    double* computing = nullptr;
    for (const RecordedStep::Span& span : step.spans) {
      const Instruction* i = span.instruction;
      if (i != nullptr && i->is_compute()) {
        const auto at = place(*step.program, *i);
        computing = at ? &of_step[{*at, i->micro_batch}] : nullptr;
      }
      if (computing != nullptr) *computing += span.seconds();
    }
    for (const auto& [place, of_place] : of_step) seconds[place.first].push_back(of_place);
  }
  std::vector<double> medians;
  medians.reserve(seconds.size());
  for (const auto& one : seconds) medians.push_back(one.empty() ? 0 : median(one));
  return medians;
}

}  // namespace

std::vector<double> block_medians(const std::vector<RecordedStep>& steps, size_t num_blocks) {
  return medians_by_place(steps, 2 + 2 * num_blocks, [&](const auto& program, const Instruction& i) {
    return std::optional(place_of(program, i, num_blocks));
  });
}

std::vector<double> parameter_medians(const std::vector<RecordedStep>& steps, size_t num_blocks) {
  bool is_split = false;
  auto medians = medians_by_place(steps, num_blocks,
                                  [&](const auto& program, const Instruction& i) -> std::optional<size_t> {
                                    if (i.what != What::backward_weight) return std::nullopt;
                                    is_split = true;
                                    return static_cast<size_t>(program.block_of_model(i.index));
                                  });
  return is_split ? medians : std::vector<double>();
}

// In each round all ranks read their clocks right after a barrier, and compare them with rank 0's. Ranks
// leave a barrier at slightly different times; the median of the rounds makes little of that. A rank on
// rank 0's node takes part, because the rounds are collective, but needs no offset.
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
  const auto recorded = recorder.take();
  const ClockOffset clock = clock_offset(group);
  // All times are moved to rank 0's clock, and then so that the earliest step of all ranks begins at 0.
  const double first_s = recorded.front().spans.front().time.begin_s + clock.seconds;
  const double shift_s = clock.seconds + group.max(-first_s);
  std::vector<strategies::TimedStep> steps;
  for (const RecordedStep& step : recorded) {
    auto& times = steps.emplace_back(step.program).times;
    for (const auto& [instruction, dimension, time] : step.spans)
      times.push_back({time.begin_s + shift_s, time.end_s + shift_s, time.memory_bytes});
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
