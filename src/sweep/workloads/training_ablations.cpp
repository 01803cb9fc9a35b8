// The ablations of a point: its steps without communication, and its communication without computing.
// Together with the time of a normal step they show how much of the communication is hidden behind computing:
// overlap = 1 - (step - compute only) / communication only. This does not depend on how a step is divided
// into phases.
#include <algorithm>

#include "base/log.h"
#include "strategies/program_series.h"
#include "sweep/workloads/training.h"

namespace shardmark {
namespace {

// Most steps of an ablation, which should not take longer than the measurement itself.
constexpr int64_t kMostSteps = 10;

}  // namespace

// Returns the seconds of `times` steps on this rank; one more before them is not counted. `details` records
// all steps, including that one.
std::vector<double> Training::timed(int64_t times, const std::function<void()>& step, StepRecorder* details) {
  Executor& executor = *setup_.executor;
  executor.set_details(details);
  group_.barrier();
  for (int64_t i = 0; i <= times; ++i) step();
  executor.recorder().end();
  executor.set_details(nullptr);
  std::vector<double> seconds;
  for (const RecordedStep& one : executor.recorder().take()) seconds.push_back(one.seconds());
  seconds.erase(seconds.begin());
  return seconds;
}

// Writes a trace of three steps, instruction by instruction, of all ranks into one file.
void Training::trace_steps(const std::function<void()>& train) {
  constexpr int64_t kTracedSteps = 3;
  StepRecorder recorder(comm_.device(), StepRecorder::Detail::instructions);
  static_cast<void>(timed(kTracedSteps - 1, train, &recorder));
  const std::string trouble = write_trace(group_, setup_.model->table(), recorder, to_text(point_), trace_);
  if (group_.rank() == 0 && !trouble.empty()) log_warning("the trace was not written: " + trouble);
}

// Times steps without communication, also block by block.
std::vector<double> Training::timed_compute(Record& record, int64_t times,
                                            const std::function<void()>& train) {
  StepRecorder recorder(comm_.device(), StepRecorder::Detail::blocks);
  setup_.executor->set_ablation(Ablation::compute_only);
  std::vector<double> seconds = timed(times, train, &recorder);
  setup_.executor->set_ablation(Ablation::none);
  const std::vector<RecordedStep> steps = recorder.take();
  const auto keep = [&](const char* name, const std::vector<double>& own) {
    const auto all = group_.gather(own);
    const auto columns = static_cast<int64_t>(all.size()) / point_.ranks;
    if (group_.rank() == 0 && columns > 0) record.samples.push_back({name, point_.ranks, columns, all});
  };
  keep("block_time", block_medians(steps, setup_.whole.blocks.size()));
  keep("parameter_backward_time", parameter_medians(steps, setup_.whole.blocks.size()));
  return seconds;
}

// The learning rate is 0, so parameters keep their values, and steps without communication compute on values
// of the usual size: a group that would have been gathered still holds what was gathered last. Nothing trains
// after this.
void Training::measure_ablations(Record& record) {
  Executor& executor = *setup_.executor;
  setup_.state->optimizer().set_learning_rate(0);
  const auto train = [&] { executor.step([this] { return loader_->next(); }); };
  const strategies::Program& program = setup_.state->step(setup_.guard->needs_norm()).program();
  if (group_.rank() == 0 && point_.training.pipeline == 1)
    record.samples.push_back(strategies::to_series(program));
  if (!point_.training.graph) static_cast<void>(timed(0, train));
  if (!trace_.empty()) trace_steps(train);
  // A CUDA graph is replayed as a whole. It cannot be measured block by block, and its captured learning rate
  // stays what it was. A point that uses graphs does not communicate either.
  if (point_.training.graph) return;
  const int64_t times = std::clamp<int64_t>(point_.sampling.min_steps, 1, kMostSteps);
  const auto compute = group_.gather(timed_compute(record, times, train));
  // All ranks must take the same decision here, because operations are collective.
  const bool communicates = !program.calls.empty() && comm_.size() > 1;
  std::vector<double> communication;
  executor.set_ablation(Ablation::communication_only);
  if (communicates) communication = group_.gather(timed(times, train));
  executor.set_ablation(Ablation::none);
  if (group_.rank() != 0 || !communicates) return;
  record.samples.push_back({"compute_only", point_.ranks, times, compute});
  record.samples.push_back({"communication_only", point_.ranks, times, communication});
}

}  // namespace shardmark
