// Every rank advances as far as it can, without clocks. An operation that has begun never has to be undone,
// so that the result does not depend on the order in which the ranks are advanced.
#include "strategies/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "specs/specs.h"
#include "strategies/meetings.h"
#include "strategies/stages.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;

class ServedRank {
 public:
  ServedRank(size_t stage, const Program& program, Meetings& meetings, Serving serving)
      : stage_(stage),
        program_(program),
        meetings_(meetings),
        serving_(serving),
        last_of_call_(program.calls.size(), nullptr) {}

  // Runs until the rank needs another one, and returns whether it got any farther.
  bool advance() {
    bool is_farther = serve();
    for (; step_ < kPlayedSteps; ++step_, next_ = 0)
      for (; next_ < program_.instructions.size(); ++next_, is_farther = true)
        if (!run(program_.instructions[next_])) return is_farther;
    return is_farther;
  }
  bool is_done() const { return step_ == kPlayedSteps; }
  std::string place() const { return place_before(program_, next_); }

 private:
  struct Operation {
    Meeting* meeting;  // nullptr: its ranks do the same at the same time, so that it ends as it begins
    const Operation* on_its_own;    // the previous one on this communicator, or nullptr
    const Operation* of_this_rank;  // the previous one on any communicator, or nullptr
    bool has_begun = false;
    bool has_ended() const { return has_begun && (meeting == nullptr || meeting->all_have_begun()); }
  };
  using Communicator = std::tuple<int64_t, int64_t, int64_t>;

  // Returns whether the instruction has ended.
  bool run(const Instruction& instruction) {
    const auto first = static_cast<size_t>(instruction.index), count = static_cast<size_t>(instruction.count);
    for (size_t call = first; call < first + count; ++call) {
      if (instruction.what == What::start) start(call);
      if (instruction.what != What::wait) continue;
      // Before its first start, a call is waited for on behalf of a step before the first one: there is
      // nothing to wait for.
      if (const Operation* last = last_of_call_[call]; last != nullptr && !last->has_ended()) return false;
    }
    return true;
  }

  void start(size_t index) {
    const CollectiveCall& call = program_.calls[index];
    Meeting* const meeting = call.dimension == specs::Dimension::pipeline
                                 ? meetings_.start({stage_, &call, &program_, next_})
                                 : nullptr;
    const Communicator communicator{call.process_group.ranks, call.process_group.stride, call.lane};
    const Operation*& before = last_on_[communicator];
    operations_.push_back({meeting, before, operations_.empty() ? nullptr : &operations_.back()});
    before = last_of_call_[index] = &operations_.back();
    waiting_[serving_ == Serving::own ? communicator : Communicator()].push_back(&operations_.back());
    serve();
  }

  // Begins all operations that may begin, and returns whether there were any.
  bool serve() {
    const auto has_ended = [](const Operation* before) { return before == nullptr || before->has_ended(); };
    bool any = false;
    for (auto& [key, queue] : waiting_)
      for (; !queue.empty(); queue.pop_front(), any = true) {
        Operation& next = *queue.front();
        if (!has_ended(next.on_its_own)) break;
        if (serving_ == Serving::serial && !has_ended(next.of_this_rank)) break;
        next.has_begun = true;
        if (next.meeting != nullptr) ++next.meeting->num_begun;
      }
    return any;
  }

  size_t stage_;
  const Program& program_;
  Meetings& meetings_;
  Serving serving_;
  std::deque<Operation> operations_;  // in the order of their starts; a deque keeps their addresses
  std::vector<const Operation*> last_of_call_;
  std::map<Communicator, const Operation*> last_on_;
  // To begin, in order. There is one queue if order matters between communicators.
  std::map<Communicator, std::deque<Operation*>> waiting_;
  int step_ = 0;
  size_t next_ = 0;  // instruction
};

}  // namespace

std::string wrong_between(const std::vector<Program>& stages, Serving serving) {
  Meetings meetings(stages.size());
  std::deque<ServedRank> ranks;
  for (size_t stage = 0; stage < stages.size(); ++stage)
    ranks.emplace_back(stage, stages[stage], meetings, serving);
  return play_all(ranks, meetings);
}

namespace {

// A layout of one rank for each stage, for a model in which each part is one tiny block.
Point smallest_point(const Choice& schedule, int64_t stages, int64_t micro_batches) {
  Point point;
  point.workload = "training";
  point.ranks = stages;
  TrainingPoint& t = point.training;
  t.strategy = {"single", {}};
  t.schedule = schedule;
  t.pipeline = stages;
  t.accumulation = micro_batches;
  t.stages = "blocks";
  t.batch_size = 1;
  const int64_t layers = stages * pipeline_schedule(schedule.name).chunks(schedule.options);
  const Choice model{
      "mlp", {{"features", int64_t{1}}, {"width", int64_t{1}}, {"layers", layers}, {"classes", int64_t{2}}}};
  t.model = resolve(model, specs::model_spec(model.name).options, "model");
  t.optimizer = {"sgd", {{"lr", 0.0}, {"momentum", 0.0}, {"weight_decay", 0.0}}};
  return point;
}

}  // namespace

std::string schedule_waits(const Choice& schedule, int64_t stages, int64_t micro_batches, Serving serving) {
  using Key = std::tuple<std::string, int64_t, int64_t, Serving>;
  static std::mutex mutex;
  // Searches for layouts ask for the same schedule again and again.
  static std::map<Key, std::string> known;
  const std::scoped_lock lock(mutex);
  const auto [found, is_new] = known.try_emplace({to_text(schedule), stages, micro_batches, serving});
  if (is_new)
    found->second = wrong_between(Stages(smallest_point(schedule, stages, micro_batches)).programs, serving);
  return found->second;
}

}  // namespace shardmark::strategies
