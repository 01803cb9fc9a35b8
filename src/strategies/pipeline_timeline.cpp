// Walks through the orders of all ranks: each rank begins its next action as soon as what it needs has ended.
#include "strategies/pipeline_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/stats.h"

namespace shardmark::strategies {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

struct PipelineSize {
  int64_t count = 0, chunks = 1, micro_batches = 0;
  Placement placement;

  PipelineSize(const std::vector<PipelineOrder>& orders, Placement of_parts)
      : count(std::ssize(orders)), placement(of_parts) {
    for (const PipelineOrder& order : orders)
      for (const PipelineAction& action : order) {
        ENSURE(action.chunk >= 0 && action.micro_batch >= 0, "counts from 0");
        chunks = std::max(chunks, action.chunk + 1);
        micro_batches = std::max(micro_batches, action.micro_batch + 1);
      }
  }
  Stage stage(int64_t index) const { return {index, count, chunks, placement}; }
  int64_t num_parts() const { return count * chunks; }
  int64_t rank_of(int64_t part) const { return stage(0).rank_of(part); }
};

// An action as other ranks identify it: by the part of the model that it passes through.
struct PassOfPart {
  int64_t part;
  PipelineAction action;
};

bool goes_back(Pass pass) { return pass == Pass::backward || pass == Pass::backward_input; }

// Computes when each action begins and ends. An action begins when the action before it on its rank has
// ended, and when the message that it needs has arrived. The rounds over all ranks go on until no rank gets
// any further. The result does not depend on the order in which ranks are visited, because a time, once
// known, is final. A rank that is not at its end after the last round waits for ever.
class PipelineWalk {
 public:
  PipelineWalk(const std::vector<PipelineOrder>& orders, const PipelineCosts& costs, Placement placement)
      : orders_(orders), costs_(costs), size_(orders, placement) {
    const auto num_ends = static_cast<size_t>(size_.num_parts() * size_.micro_batches);
    forward_end_s_.assign(num_ends, kNotYet);
    backward_end_s_.assign(num_ends, kNotYet);
    ranks_.resize(orders.size());
  }

  void run() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t rank = 0; rank < ranks_.size(); ++rank)
        while (advance(rank)) goes_on = true;
    }
  }

  const std::vector<std::vector<TimedAction>>& ranks() const { return ranks_; }
  const PipelineSize& size() const { return size_; }
  // The action that a rank cannot begin yet. None if the rank has done everything.
  std::optional<PipelineAction> waiting(size_t rank) const {
    const size_t done = ranks_[rank].size();
    if (done == orders_[rank].size()) return {};
    return orders_[rank][done];
  }
  // What an action needs from another part: the same pass through a neighbouring part. A forward needs that
  // of the part before, a backward that of the part after. None at the ends of the model, and none for
  // backward_weight, which needs only what its own rank has. What an action needs of its own part, such as
  // its forward, is not looked at here: wrong_on() checks that the rank does it earlier.
  std::optional<PassOfPart> needed(size_t rank, const PipelineAction& action) const {
    if (action.pass == Pass::backward_weight) return {};
    const int64_t own = size_.stage(static_cast<int64_t>(rank)).part(action.chunk);
    const int64_t part = action.pass == Pass::forward ? own - 1 : own + 1;
    if (part < 0 || part == size_.num_parts()) return {};
    return PassOfPart{part, {action.pass, part / size_.count, action.micro_batch}};
  }

 private:
  // When a pass through a part ends. A backward_input counts as a backward here: it computes the gradient
  // that the part before it waits for.
  double& end_s(int64_t part, const PipelineAction& action) {
    auto& ends = goes_back(action.pass) ? backward_end_s_ : forward_end_s_;
    return ends[static_cast<size_t>(part * size_.micro_batches + action.micro_batch)];
  }

  bool advance(size_t rank) {
    const std::optional<PipelineAction> next = waiting(rank);
    if (!next) return false;
    std::vector<TimedAction>& done = ranks_[rank];
    double begin_s = done.empty() ? 0 : done.back().end_s;
    if (const std::optional<PassOfPart> other = needed(rank, *next)) {
      const bool is_elsewhere = size_.rank_of(other->part) != static_cast<int64_t>(rank);
      begin_s = std::max(begin_s, end_s(other->part, other->action) + (is_elsewhere ? costs_.latency_s : 0));
    }
    if (begin_s == kNotYet) return false;
    done.push_back({*next, begin_s, begin_s + costs_.at(rank, next->chunk).of(next->pass)});
    if (next->pass != Pass::backward_weight)
      end_s(size_.stage(static_cast<int64_t>(rank)).part(next->chunk), *next) = done.back().end_s;
    return true;
  }

  const std::vector<PipelineOrder>& orders_;
  const PipelineCosts& costs_;
  PipelineSize size_;
  std::vector<double> forward_end_s_, backward_end_s_;  // [part][micro-batch]
  std::vector<std::vector<TimedAction>> ranks_;         // [rank]: the actions that are done
};

std::string of_stage(int64_t index, const PipelineAction& action, const PipelineSize& size) {
  return fmt::format("stage {}'s {}", index, describe(action, size.chunks));
}

// For one chunk and micro-batch on one rank: the index in the rank's order at which each pass stands.
struct Visits {
  std::optional<size_t> at[4];

  std::optional<size_t>& of(Pass pass) { return at[static_cast<size_t>(pass)]; }
};

// Every chunk needs, for every micro-batch, one forward and then either one backward, or one backward_input
// and after it one backward_weight. A message about a missing action also names the stage that would wait
// for it.
std::string wrong_visits(int64_t index, Visits& visits, PipelineAction about, const PipelineSize& size) {
  const auto said = [&](Pass pass) {
    about.pass = pass;
    return describe(about, size.chunks);
  };
  const auto missing = [&](Pass pass) {
    const int64_t part = size.stage(index).part(about.chunk) + (pass == Pass::forward ? 1 : -1);
    std::string text = fmt::format("stage {} never does {}", index, said(pass));
    if (pass != Pass::backward_weight && part >= 0 && part < size.num_parts())
      text += fmt::format(", for which stage {} waits", size.rank_of(part));
    return text;
  };
  const auto too_early = [&](Pass pass, Pass needed) {
    return fmt::format("stage {}: {} cannot begin: its {} comes later", index, said(pass),
                       needed == Pass::forward ? "forward" : "backward_input");
  };
  const auto forward = visits.of(Pass::forward), whole = visits.of(Pass::backward),
             input = visits.of(Pass::backward_input), weight = visits.of(Pass::backward_weight);
  if (!forward) return missing(Pass::forward);
  if (!whole && !input && !weight) return missing(Pass::backward);
  if (whole && (input || weight))
    return fmt::format("stage {}: {} is part of its backward, which comes as well", index,
                       said(input ? Pass::backward_input : Pass::backward_weight));
  if (whole) return *whole < *forward ? too_early(Pass::backward, Pass::forward) : "";
  if (!input) return missing(Pass::backward_input);
  if (!weight) return missing(Pass::backward_weight);
  if (*input < *forward) return too_early(Pass::backward_input, Pass::forward);
  return *weight < *input ? too_early(Pass::backward_weight, Pass::backward_input) : "";
}

std::string wrong_on(int64_t index, const PipelineOrder& order, const PipelineSize& size) {
  std::vector<Visits> all(static_cast<size_t>(size.chunks * size.micro_batches));
  for (size_t i = 0; i < order.size(); ++i) {
    const PipelineAction& action = order[i];
    std::optional<size_t>& at =
        all[static_cast<size_t>(action.chunk * size.micro_batches + action.micro_batch)].of(action.pass);
    if (at) return fmt::format("stage {}: {} comes twice", index, describe(action, size.chunks));
    at = i;
  }
  for (int64_t chunk = 0; chunk < size.chunks; ++chunk)
    for (int64_t m = 0; m < size.micro_batches; ++m) {
      Visits& visits = all[static_cast<size_t>(chunk * size.micro_batches + m)];
      std::string wrong = wrong_visits(index, visits, {Pass::forward, chunk, m}, size);
      if (!wrong.empty()) return wrong;
    }
  return "";
}

// Follows from each waiting rank to the rank that has what it waits for. That rank waits as well, because
// wrong_on() has found every action in its order, and it would have got there otherwise. After as many
// steps as there are ranks, the walk is on a cycle. It is printed from there until it closes.
std::string deadlock(const PipelineWalk& walk) {
  const auto after = [&](size_t rank) {
    return static_cast<size_t>(walk.size().rank_of(walk.needed(rank, *walk.waiting(rank))->part));
  };
  size_t rank = 0;
  while (!walk.waiting(rank)) ++rank;
  for (int64_t step = 0; step < walk.size().count; ++step) rank = after(rank);  // now on the cycle
  const size_t first = rank;
  std::string text;
  do {
    const PipelineAction wanted = *walk.waiting(rank);
    const size_t other = after(rank);
    text += text.empty() ? fmt::format("stage {}: {}", rank, describe(wanted, walk.size().chunks)) : "; that";
    text += fmt::format(" cannot begin before {}, which comes after {}",
                        of_stage(static_cast<int64_t>(other), walk.needed(rank, wanted)->action, walk.size()),
                        of_stage(static_cast<int64_t>(other), *walk.waiting(other), walk.size()));
    rank = other;
  } while (rank != first);
  return text + ": a deadlock";
}

// A pair of chunk and micro-batch is in flight from its forward to its backward. If backward is split, it
// stays until backward_weight, which still reads the activations.
int64_t most_in_flight(const std::vector<TimedAction>& actions) {
  int64_t now = 0, most = 0;
  for (const TimedAction& timed : actions) {
    now += timed.action.pass == Pass::forward ? 1 : timed.action.pass == Pass::backward_input ? 0 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

double PassCosts::of(Pass pass) const {
  return pass == Pass::forward          ? forward_s
         : pass == Pass::backward       ? backward_s
         : pass == Pass::backward_input ? backward_input_s
                                        : backward_weight_s;
}

double PipelineTimeline::idle_share() const {
  const double idle = std::accumulate(idle_s.begin(), idle_s.end(), 0.0);
  return length_s > 0 ? idle / (length_s * static_cast<double>(idle_s.size())) : 0;
}

std::string wrong_between(const std::vector<PipelineOrder>& orders, Placement placement) {
  const PipelineSize size(orders, placement);
  for (int64_t index = 0; index < size.count; ++index) {
    std::string wrong = wrong_on(index, orders[static_cast<size_t>(index)], size);
    if (!wrong.empty()) return wrong;
  }
  // The durations are arbitrary: whether ranks deadlock depends on the orders alone.
  const PipelineCosts costs;
  PipelineWalk walk(orders, costs, placement);
  walk.run();
  for (size_t rank = 0; rank < orders.size(); ++rank)
    if (walk.waiting(rank)) return deadlock(walk);
  return "";
}

PipelineTimeline timeline(const std::vector<PipelineOrder>& orders, const PipelineCosts& costs,
                          Placement placement) {
  const std::string wrong = wrong_between(orders, placement);
  ENSURE(wrong.empty(), wrong);
  PipelineWalk walk(orders, costs, placement);
  walk.run();
  PipelineTimeline result{walk.ranks()};
  result.chunks = walk.size().chunks;
  for (const auto& rank : result.ranks)
    if (!rank.empty()) result.length_s = std::max(result.length_s, rank.back().end_s);
  for (const auto& rank : result.ranks) {
    double idle_s = result.length_s;
    for (const TimedAction& timed : rank) idle_s -= timed.end_s - timed.begin_s;
    result.idle_s.push_back(without_rounding(idle_s, result.length_s));
    result.most_in_flight.push_back(most_in_flight(rank));
  }
  return result;
}

}  // namespace shardmark::strategies
