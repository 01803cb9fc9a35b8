// The twins of a point: its steps without communication, and its communication without steps. They tell how
// much of the communication hides behind computing, whatever the phases say.
#include <algorithm>
#include <numeric>

#include "workloads/step_trace.h"
#include "workloads/training.h"

namespace shardmark {
namespace {

constexpr int64_t kMostSteps =
    10;  // of each twin: a point must not take longer for its twins than for itself

}  // namespace

// Seconds of each of so many steps on this rank, after one that is not counted.
std::vector<double> Training::timed(int64_t times, const std::function<void()>& step) {
  group_.barrier();
  for (int64_t i = 0; i <= times; ++i) step();
  clock_.end();
  std::vector<double> seconds;
  for (const auto& phases : clock_.resolve())
    seconds.push_back(std::accumulate(phases.begin(), phases.end(), 0.0));
  seconds.erase(seconds.begin());
  return seconds;
}

// The program of a step in steady state, written down in the second of two; and the first recorded.
Recording Training::trace_steps(Record& record, const std::function<void()>& train) {
  StepTrace trace;
  comm_.set_listener(&trace);
  trainee_.loop->set_observer(&trace);
  comm_.set_mode(Tap::Mode::record);
  static_cast<void>(timed(0, train));
  Recording recording = comm_.take_recording();
  comm_.set_mode(Tap::Mode::pass);
  trace.begin_step();
  static_cast<void>(timed(0, train));
  comm_.set_listener(nullptr);
  trainee_.loop->set_observer(nullptr);
  if (group_.rank() == 0) record.samples.push_back(laws::to_series(trace.program()));
  return recording;
}

// Steps in which nothing moves; moment by moment, too.
std::vector<double> Training::timed_compute(Record& record, int64_t times,
                                            const std::function<void()>& train) {
  MomentTimer timer(comm_.device());
  trainee_.loop->set_observer(&timer);
  comm_.set_mode(Tap::Mode::mute);
  std::vector<double> seconds = timed(times, [&] {
    train();
    timer.end_step();
  });
  comm_.set_mode(Tap::Mode::pass);
  trainee_.loop->set_observer(nullptr);
  const auto moments = group_.gather(timer.medians(trainee_.model->blocks().size()));
  const auto columns = static_cast<int64_t>(moments.size()) / point_.ranks;
  if (group_.rank() == 0) record.samples.push_back({"block_time", point_.ranks, columns, moments});
  return seconds;
}

// The parameters stay as they are (learning rate 0), so the muted steps compute on values of the usual size:
// groups that would have been gathered hold what was gathered last. Nothing trains afterwards.
void Training::measure_twins(Record& record) {
  trainee_.strategy->set_learning_rate(0);
  const auto train = [this] { trainee_.loop->step([this] { return loader_->next(); }); };
  const Recording recording = trace_steps(record, train);
  const int64_t times = std::clamp<int64_t>(point_.sampling.min_steps, 1, kMostSteps);
  const auto compute = group_.gather(timed_compute(record, times, train));
  // The same on all ranks: operations are collective.
  const bool communicates = !recording.empty() && comm_.size() > 1;
  std::vector<double> communication;
  if (communicates)
    communication = group_.gather(timed(times, [&] {
      clock_.begin_step();
      recording.play();
    }));
  if (trainee_.loop->failure()) std::rethrow_exception(trainee_.loop->failure());
  if (group_.rank() != 0 || !communicates) return;
  record.samples.push_back({"compute_only", point_.ranks, times, compute});
  record.samples.push_back({"communication_only", point_.ranks, times, communication});
}

}  // namespace shardmark
