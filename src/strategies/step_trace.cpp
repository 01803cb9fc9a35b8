// Writes events, one a line. Times are in microseconds, as the format requires.
#include "strategies/step_trace.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "strategies/program_text.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;

constexpr int kComputing = 0, kPhaseTrack = 1;  // tracks of a rank
constexpr double kShortestS = 1e-7;             // shorter local work and waits are left out

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Events {
 public:
  explicit Events(int64_t rank) : rank_(rank) {}

  void name(const std::string& process) {
    add(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", rank_, quoted(process));
    for (const auto& [track, title] : {std::pair(kPhaseTrack, "phases"), std::pair(kComputing, "computing")})
      add(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", rank_, track,
          title);
  }
  void phase(Phase phase, double begin_s, double end_s) {
    slice(kPhaseTrack, kPhaseNames[static_cast<size_t>(phase)], "phase", begin_s, end_s);
  }
  void slice(int track, const std::string& name, const char* category, double begin_s, double end_s,
             int64_t micro_batch = 0) {
    add(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"micro-batch":{}}}}})",
        quoted(name), category, rank_, track, begin_s * 1e6, (end_s - begin_s) * 1e6, micro_batch);
  }
  void memory(double at_s, double bytes) {
    if (std::isfinite(bytes))
      add(R"({{"ph":"C","name":"memory","pid":{},"ts":{:.3f},"args":{{"bytes":{:.0f}}}}})", rank_, at_s * 1e6,
          bytes);
  }
  // An async event, so that calls that are in flight together are shown side by side.
  void call(const CollectiveCall& call, const std::string& name, double begin_s, double end_s) {
    const int64_t id = next_id_++;
    const double seconds = end_s - begin_s;
    add(R"({{"ph":"b","name":{},"cat":"communication","id":"{}.{}","pid":{},"tid":{},"ts":{:.3f},"args":{{"bytes":{:.0f},"ranks":{},"dimension":"{}","algbw GB/s":{:.4g}}}}})",
        quoted(name), rank_, id, rank_, kComputing, begin_s * 1e6, call.bytes, call.process_group.ranks,
        specs::kDimensionNames[static_cast<size_t>(call.dimension)],
        seconds > 0 ? call.bytes / seconds / 1e9 : 0);
    add(R"({{"ph":"e","name":{},"cat":"communication","id":"{}.{}","pid":{},"tid":{},"ts":{:.3f}}})",
        quoted(name), rank_, id, rank_, kComputing, end_s * 1e6);
  }
  std::string take() { return std::move(text_); }

 private:
  template <class... Values>
  void add(const char* format, const Values&... values) {
    if (!text_.empty()) text_ += ",\n";
    text_ += fmt::format(fmt::runtime(format), values...);
  }

  int64_t rank_;
  int64_t next_id_ = 0;
  std::string text_;
};

// The blocks of a pipeline stage, for example ", blocks 0-1, 4-5".
std::string blocks_text(const Program& program) {
  std::string text;
  if (program.stages == 1) return text;
  for (const specs::Chunk& chunk : program.chunks)
    text += fmt::format("{}{}-{}", text.empty() ? ", blocks " : ", ", chunk.first_block,
                        chunk.first_block + chunk.end - chunk.begin - 1);
  return text;
}

std::string call_name(const Program& program, int64_t index, const ModelTable& model) {
  const CollectiveCall& call = program.calls[static_cast<size_t>(index)];
  return fmt::format("{} #{}{}", call.name(), index,
                     call.group ? " of " + model.groups[static_cast<size_t>(*call.group)].name : "");
}

}  // namespace

Phase phase_of(StepPart part) {
  constexpr std::array kPhases = {Phase::data, Phase::forward, Phase::backward, Phase::optimizer,
                                  Phase::optimizer};  // [StepPart]
  return kPhases[static_cast<size_t>(part)];
}

std::string trace_events(const ModelTable& model, int64_t rank, const std::string& rank_name,
                         const std::vector<TimedStep>& steps) {
  Events events(rank);
  events.name(rank_name + (steps.empty() ? "" : blocks_text(*steps.front().program)));
  std::map<int64_t, double> started;  // calls in flight
  const Program* last = nullptr;
  for (const TimedStep& step : steps) {
    if (step.times.empty()) continue;
    const Program& program = *step.program;
    // A call may start in one step and be waited for in the next one, so that `started` outlives a step.
    // The numbers of calls mean something else in another program, such as an evaluation.
    if (std::exchange(last, &program) != &program) started.clear();
    std::optional<Phase> phase;
    double phase_begin_s = 0;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const Instruction& instruction = program.instructions[i];
      const TimedInstruction& time = step.times[i];
      if (instruction.is_compute()) {
        events.memory(time.begin_s, time.memory_bytes);
        const auto before = std::exchange(phase, phase_of(instruction.part));
        if (before && phase != before) events.phase(*before, phase_begin_s, time.begin_s);
        if (phase != before) phase_begin_s = time.begin_s;
      }
      if (instruction.is_compute() || time.end_s - time.begin_s > kShortestS)
        events.slice(kComputing, describe(program, instruction, model),
                     instruction.is_compute()         ? "compute"
                     : instruction.is_communication() ? "wait"
                                                      : "local",
                     time.begin_s, time.end_s, instruction.micro_batch);
      for (int64_t c = instruction.index; c < instruction.index + instruction.count; ++c) {
        if (instruction.what == What::start) started[c] = time.begin_s;
        if (instruction.what != What::wait || !started.contains(c)) continue;
        events.call(program.calls[static_cast<size_t>(c)], call_name(program, c, model), started[c],
                    time.end_s);
        started.erase(c);
      }
    }
    if (phase) events.phase(*phase, phase_begin_s, step.times.back().end_s);
  }
  return events.take();
}

std::string trace_file(const std::vector<std::string>& events_of_ranks,
                       const std::vector<std::pair<std::string, std::string>>& about) {
  std::string text = "{\"traceEvents\":[\n";
  for (const std::string& events : events_of_ranks)
    if (!events.empty()) text += (&events == &events_of_ranks.front() ? "" : ",\n") + events;
  text += "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{";
  for (const auto& [name, value] : about)
    text += (name == about.front().first ? "" : ",") + quoted(name) + ":" + quoted(value);
  return text + "}}\n";
}

}  // namespace shardmark::strategies
