// Advances the clocks of the ranks' computing threads, and keeps track of how much of each queue is done.
#include "strategies/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/stats.h"
#include "strategies/meetings.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;
using specs::Dimension;

// The operations in flight as one queue, in seconds of work: how much was started, and how much of it is
// done. An operation ends when the work that had been started up to it is done, so that one number for each
// operation is enough. An operation that was never started counts as done: in the first step, a wait for a
// call of the step before takes no time. An operation of zero seconds ends together with the one before it.
class Queue {
 public:
  explicit Queue(size_t num_operations) : ends_(num_operations, -std::numeric_limits<double>::infinity()) {}

  void start(size_t operation, double seconds, int64_t link) {
    started_ += seconds;
    ends_[operation] = started_;
    if (seconds > 0) under_way_.push_back({started_, link});
  }
  bool is_busy() const { return !under_way_.empty(); }
  // These two ask a busy queue which link its first operation uses, and in how many seconds that is complete.
  int64_t link() const { return under_way_.front().link; }
  double left_of_first() const { return under_way_.front().end - done_; }
  // At most as far as the end of the first operation.
  void advance(double seconds) {
    if (!is_busy()) return;
    if (seconds < left_of_first()) {
      done_ += seconds;
      return;
    }
    // Takes over the exact end instead of adding, so that is_done() compares equal numbers in spite of
    // rounding.
    done_ = under_way_.front().end;
    under_way_.pop_front();
  }
  // Whether an operation is complete. All operations before it are complete then, too.
  bool is_done(size_t operation) const { return ends_[operation] <= done_; }

 private:
  struct UnderWay {
    double end;
    int64_t link;
  };
  double started_ = 0, done_ = 0;
  std::vector<double> ends_;  // [operation]: the value of started_ after its last start
  std::deque<UnderWay> under_way_;
};

// The queue of a strategy's operations, and that of those inside blocks, which never wait for the former.
// Where the first operations of both use one link, each gets half of it.
class Queues {
 public:
  explicit Queues(size_t num_operations) : queues_{Queue(num_operations), Queue(num_operations)} {}
  Queue& of(const CollectiveCall& call) { return queues_[call.inside_block ? 1 : 0]; }

  void advance(double seconds) {
    while (seconds > 0 && is_busy()) seconds -= advance_once(seconds);
  }
  // Returns the seconds until an operation is complete.
  double advance_until_done(const CollectiveCall& call, size_t operation) {
    double seconds = 0;
    while (!of(call).is_done(operation)) seconds += advance_once(std::numeric_limits<double>::infinity());
    return seconds;
  }

 private:
  bool is_busy() const { return queues_[0].is_busy() || queues_[1].is_busy(); }
  // Until a first operation is complete, or `most` seconds have passed. Returns the seconds.
  double advance_once(double most) {
    const bool both = queues_[0].is_busy() && queues_[1].is_busy();
    const bool shares = both && queues_[0].link() != 0 && queues_[0].link() == queues_[1].link();
    const double each = shares ? 2 : 1;  // seconds for one of work
    double work = most / each;
    for (const Queue& queue : queues_)
      if (queue.is_busy()) work = std::min(work, queue.left_of_first());
    for (Queue& queue : queues_) queue.advance(work);
    return work * each;
  }
  std::array<Queue, 2> queues_;
};

double lasting(const Instruction& instruction, const ComputeTimes& compute) {
  const auto of_block = [&](const std::vector<double>& seconds) {
    const auto block = static_cast<size_t>(instruction.index);
    return block < seconds.size() ? seconds[block] : 0;
  };
  const auto of_parameters = [&] {
    return compute.backward_weight_s.empty() ? of_block(compute.backward_s) / 2
                                             : of_block(compute.backward_weight_s);
  };
  switch (instruction.what) {
    case What::data:
      return compute.data_s;
    case What::forward:
      return of_block(compute.forward_s);
    case What::backward:
      return of_block(compute.backward_s);
    case What::backward_input:
      return of_block(compute.backward_s) - of_parameters();
    case What::backward_weight:
      return of_parameters();
    case What::update:
      return compute.update_s;
    default:
      return 0;  // the blocks' times include what a rank does to its own memory
  }
}

// One rank on its way through the steps.
class Rank {
 public:
  Rank(size_t stage, const SimulatedRank& of, Meetings* meetings, double progress, TimedStep* timed)
      : stage_(stage),
        of_(of),
        meetings_(meetings),
        progress_(progress),
        timed_(timed),
        queues_(of.program->calls.size()),
        met_(of.program->calls.size(), nullptr) {}

  bool is_done() const { return step_ == kPlayedSteps; }
  double before_last_s() const { return before_last_s_; }
  double now_s() const { return now_s_; }
  const SimulatedStep& last() const { return last_; }

  // Runs until the rank needs another one, and returns whether it got any farther.
  bool advance() {
    const auto& instructions = of_.program->instructions;
    bool is_farther = false;
    for (; !is_done(); is_farther = true) {
      // The clock of a step starts before its first instruction. If that is a wait which was left half-way,
      // the step has begun already.
      if (next_ == 0 && waited_for_ == 0) begin_step();
      if (next_ < instructions.size()) {
        if (!run(instructions[next_])) return is_farther;
        if (timed_ != nullptr) timed_->times.push_back({ended_s_, now_s_});
        ended_s_ = now_s_;
        waited_for_ = 0;
        ++next_;
      } else {
        ++step_;
        next_ = 0;
      }
    }
    return is_farther;
  }

  std::string place() const { return place_before(*of_.program, next_); }

 private:
  void begin_step() {
    before_last_s_ = ended_s_ = now_s_;
    last_ = {};
    if (timed_ != nullptr) *timed_ = {of_.program, {}};
  }

  // Operations between stages are matched by Meetings. All other operations involve ranks that do the same
  // at the same time as this one, so that nobody has to be waited for, and a queue tells when they end.
  bool is_shared(const CollectiveCall& call) const {
    return meetings_ != nullptr && call.dimension == Dimension::pipeline;
  }
  int64_t link_of(size_t index) const { return of_.operation_link.empty() ? 0 : of_.operation_link[index]; }

  void pass(double seconds, double progress) {
    now_s_ += seconds;
    queues_.advance(progress * seconds);
  }

  void start(size_t index) {
    const CollectiveCall& call = of_.program->calls[index];
    if (is_shared(call))
      met_[index] = meetings_->start({stage_, &call, of_.program, next_}, now_s_, of_.operation_s[index]);
    else
      queues_.of(call).start(index, of_.operation_s[index], link_of(index));
    // The program lists a block's calls behind the block. In truth the block has computed a share of its
    // products (hidden_by) while the call was under way, so that this share of the call is done already.
    if (call.inside_block) queues_.of(call).advance(progress_ * call.inside_block->hidden_by * computed_s_);
  }

  // The seconds that are left of a message. It has moved since it began, but only at the rate of `progress`
  // if the rank has been computing meanwhile.
  double left_of(const Meeting& meeting) const {
    const double since_s = now_s_ - *meeting.began_s;
    return std::max(0.0, meeting.seconds - (since_s > 0 ? progress_ : 1) * since_s);
  }

  // Returns whether the end of the operation is known yet.
  bool wait(size_t index) {
    const CollectiveCall& call = of_.program->calls[index];
    double seconds = 0;
    if (!is_shared(call)) {
      seconds = queues_.advance_until_done(call, index);
      now_s_ += seconds;
    } else if (met_[index] != nullptr) {
      // Another stage has not started its part yet. This rank stops here, and play_all() comes back to it.
      if (!met_[index]->began_s) return false;
      seconds = left_of(*met_[index]);
      pass(seconds, 1);
    }
    last_.exposed_s += seconds;
    last_.waited_s[static_cast<size_t>(call.dimension)] += seconds;
    return true;
  }

  // Returns whether the instruction has ended.
  bool run(const Instruction& instruction) {
    const auto first = static_cast<size_t>(instruction.index), count = static_cast<size_t>(instruction.count);
    if (instruction.what == What::wait) {
      for (; waited_for_ < count; ++waited_for_)
        if (!wait(first + waited_for_)) return false;
    } else if (instruction.what == What::start) {
      for (size_t call = first; call < first + count; ++call) start(call);
    } else if (instruction.is_compute()) {
      const double seconds = lasting(instruction, of_.compute);
      computed_s_ = seconds;
      last_.compute_s += seconds;
      pass(seconds, progress_);
    }
    return true;
  }

  size_t stage_;
  const SimulatedRank& of_;
  Meetings* meetings_;  // nullptr if there is one stage
  double progress_;
  TimedStep* timed_;
  Queues queues_;
  std::vector<const Meeting*> met_;  // [call]: its last start
  int step_ = 0;
  size_t next_ = 0;        // instruction
  size_t waited_for_ = 0;  // calls of the current wait that are already waited for
  double now_s_ = 0, ended_s_ = 0, before_last_s_ = 0;
  double computed_s_ = 0;  // by the last instruction that computed
  SimulatedStep last_;
};

SimulatedStep mean_of(const std::vector<SimulatedRank>& stages, const std::vector<Rank>& ranks) {
  // A step lasts from the moment at which the last stage begins it to the moment at which the last stage
  // ends it. A stage that ends earlier waits for the others: the rest of the step is pipeline waiting.
  double began_s = 0, ended_s = 0;
  for (const Rank& rank : ranks) {
    began_s = std::max(began_s, rank.before_last_s());
    ended_s = std::max(ended_s, rank.now_s());
  }
  SimulatedStep mean;
  mean.step_s = ended_s - began_s;
  const double share = 1 / static_cast<double>(ranks.size());
  for (size_t stage = 0; stage < ranks.size(); ++stage) {
    const auto& seconds = stages[stage].operation_s;
    const SimulatedStep& last = ranks[stage].last();
    mean.compute_s += share * last.compute_s;
    mean.communication_s += share * std::accumulate(seconds.begin(), seconds.end(), 0.0);
    for (size_t d = 0; d < mean.waited_s.size(); ++d) mean.waited_s[d] += share * last.waited_s[d];
    mean.waited_s[static_cast<size_t>(Dimension::pipeline)] +=
        share * (mean.step_s - last.compute_s - last.exposed_s);  // for the last stage to end
  }
  double& for_stages_s = mean.waited_s[static_cast<size_t>(Dimension::pipeline)];
  for_stages_s = without_rounding(for_stages_s, mean.step_s);
  mean.exposed_s = without_rounding(mean.step_s - mean.compute_s, mean.step_s);
  return mean;
}

}  // namespace

SimulatedStep simulate(const std::vector<SimulatedRank>& stages, double progress,
                       std::vector<TimedStep>* timed) {
  if (timed != nullptr) timed->assign(stages.size(), {});
  Meetings meetings(stages.size());
  std::vector<Rank> ranks;
  for (size_t stage = 0; stage < stages.size(); ++stage)
    ranks.emplace_back(stage, stages[stage], stages.size() > 1 ? &meetings : nullptr, progress,
                       timed == nullptr ? nullptr : &(*timed)[stage]);
  const std::string wrong = play_all(ranks, meetings);
  ENSURE(wrong.empty(), wrong);
  if (timed != nullptr) {
    double began_s = std::numeric_limits<double>::infinity();
    for (const Rank& rank : ranks) began_s = std::min(began_s, rank.before_last_s());
    for (TimedStep& step : *timed)
      for (TimedInstruction& time : step.times) time.begin_s -= began_s, time.end_s -= began_s;
  }
  return mean_of(stages, ranks);
}

SimulatedStep simulate(const Program& program, const ComputeTimes& compute,
                       const std::vector<double>& operation_s, double progress, TimedStep* timed) {
  std::vector<TimedStep> steps;
  const SimulatedStep step =
      simulate({{&program, compute, operation_s}}, progress, timed == nullptr ? nullptr : &steps);
  if (timed != nullptr) *timed = std::move(steps.front());
  return step;
}

}  // namespace shardmark::strategies
