// Turns the heartbeat pages of all ranks into a few lines of text.
#include "comm/watch/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace shardmark {
namespace {

using States = std::vector<const RankState*>;
constexpr size_t kMostLines = 4;  // for each kind of line

std::string seconds(double age_s) { return fmt::format("{:.0f} s", std::floor(std::max(age_s, 0.0))); }

std::vector<int64_t> numbers(const States& states) {
  std::vector<int64_t> ranks;
  for (const RankState* state : states) ranks.push_back(state->rank);
  return ranks;
}

std::string ranks_text(const States& states) {
  return (states.size() == 1 ? "rank " : "ranks ") + ranges(numbers(states));
}

std::string text_of(const RankState::Operation& operation) {
  return operation_text(operation.name, operation.number, operation.bytes, operation.peer);
}

std::string place(const RankState& state) {
  return place_text({state.step, state.stage, state.block, state.micro_batch, state.pipeline_stage});
}

// For example "stopped by a signal". Empty if there is nothing special about the rank.
std::string condition(const RankState& state) {
  if (!state.heard) return "its node does not respond";
  if (state.process == 'T') return "stopped by a signal";
  if (state.process == 't') return "stopped by a debugger";
  if (state.is_gone()) return "dead";
  if (!state.answers) return "does not respond";
  if (state.process == 'D') return "in the kernel: waiting for a device or a file system";
  return "";
}

// Whether the rank waits for others (in an operation or at the end of a stage), and what it is doing.
bool waits(const RankState& state) { return state.awaited.number > 0 || state.meets || state.rests; }
std::string occupation(const RankState& state) {
  if (state.rests) return "done with their part";
  if (state.awaited.number > 0) return "in " + text_of(state.awaited);
  return (state.meets ? "at the end of " : "in ") + place(state);
}

// How far a rank has come, as a tuple that compares in the order of Note [Who is behind].
auto progress(const RankState& state) {
  return std::tuple(waits(state), state.num_points, state.started.number, state.num_stages,
                    state.completed.number);
}

// The next operation that this rank has not started although ranks before it have, such as "all_gather #123
// (4.0 MiB)". Empty if there is none.
std::string missing_operation(const RankState& state, const States& others) {
  int64_t most = 0;
  for (const RankState* other : others) {
    if (other->num_points != state.num_points || other->pipeline_stage != state.pipeline_stage) continue;
    for (const auto& operation : {other->started, other->awaited, other->completed})
      if (operation.number == state.started.number + 1) return text_of(operation);
    most = std::max(most, other->started.number);
  }
  if (most <= state.started.number) return "";
  return fmt::format("operation #{} (others are at #{})", state.started.number + 1, most);
}

// "on node1", "on node1 and node2", "on 12 nodes"
std::string nodes_text(const States& states, const NodeMap& node_map) {
  std::vector<std::string> names;
  for (const RankState* state : states) {
    const std::string name = node_map.name_of(static_cast<int>(state->rank));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() > 2)
    return fmt::format("on {} nodes, {} to {}", names.size(), names.front(), names.back());
  return "on " + names.front() + (names.size() == 2 ? " and " + names.back() : "");
}

class Explanation {
 public:
  Explanation(const std::vector<RankState>& states, const NodeMap& node_map) : node_map_(node_map) {
    for (const RankState& state : states) {
      if (state.heard && state.answers && state.is_inside()) inside_.push_back(&state);
      if (state.heard && state.answers && state.is_inside() && !state.rests) partaking_.push_back(&state);
      if (!state.answers) behind_.push_back(&state);
      if (state.heard && state.is_inside() && (latest_ == nullptr || state.num_points > latest_->num_points))
        latest_ = &state;
      if (state.heard && state.is_inside())
        still_s_ = still_s_ < 0 ? state.beat_age_s : std::min(still_s_, state.beat_age_s);
    }
    if (behind_.empty() && !partaking_.empty()) find_slowest();
    for (const RankState* state : inside_)
      if (std::find(behind_.begin(), behind_.end(), state) == behind_.end()) others_.push_back(state);
  }

  Diagnosis finding() const {
    std::string message = fmt::format("watchdog: no progress for {} in {}", seconds(still_s_),
                                      latest_ == nullptr ? "any point" : latest_->point);
    message += behind_.empty() ? nobody_behind("\n  ") : behind_lines() + waiting_lines();
    message += mismatch();
    message +=
        "\n  ending the job; what is finished is kept: go on with --resume, or allow more time with "
        "--timeout";
    return {message, fmt::format("no progress for {}: {}", seconds(still_s_), short_reason())};
  }

 private:
  // Implements Note [Who is behind] for the case that all ranks answer. If all ranks have come equally far
  // and all of them wait, nobody is behind.
  void find_slowest() {
    const auto least = progress(**std::min_element(partaking_.begin(), partaking_.end(), less));
    for (const RankState* state : partaking_)
      if (progress(*state) == least) behind_.push_back(state);
    if (behind_.size() == partaking_.size() && waits(*behind_.front())) behind_.clear();
  }
  static bool less(const RankState* a, const RankState* b) { return progress(*a) < progress(*b); }

  std::string nobody_behind(const std::string& begin) const {
    const States& all = partaking_.empty() ? inside_ : partaking_;
    if (all.empty()) return begin + "no rank is in a point";
    return fmt::format("{}no rank is behind: {} {} {}{}", begin, ranks_text(all),
                       all.size() == 1 ? "is" : "are all", occupation(*all.front()),
                       all.front()->awaited.number > 0 ? ", which does not complete" : "");
  }

  std::string behind_line(const RankState& state) const {
    const std::string trouble = condition(state);
    std::string line =
        fmt::format("rank {} on {} (pid {}{}): ", state.rank, node_map_.name_of(static_cast<int>(state.rank)),
                    state.pid, trouble.empty() ? "" : ", " + trouble);
    if (!state.is_inside()) return line + "between points";
    line += fmt::format("{} since {}", place(state), seconds(state.beat_age_s));
    if (state.completed.number > 0)
      line += fmt::format("; last completed {} #{}", state.completed.name, state.completed.number);
    const std::string missing = missing_operation(state, others_);
    if (state.awaited.number > 0) line += "; waits " + occupation(state);
    if (!missing.empty()) line += "; has not started " + missing;
    return line;
  }

  // One line per node that does not answer, then one per rank; the remaining ranks share one line.
  std::string behind_lines() const {
    std::vector<std::string> lines;
    std::map<int, States> silent;
    States rest;
    for (const RankState* state : behind_) {
      if (!state->heard)
        silent[node_map_.node_of[static_cast<size_t>(state->rank)]].push_back(state);
      else if (rest.size() < kMostLines)
        rest.push_back(state);
    }
    for (const auto& [node, states] : silent) {
      if (lines.size() == kMostLines) break;
      lines.push_back(fmt::format("{} on {}: the node does not respond", ranks_text(states),
                                  node_map_.names[static_cast<size_t>(node)]));
    }
    for (const RankState* state : rest) lines.push_back(behind_line(*state));
    std::string text;
    for (const std::string& line : lines) text += "\n  behind: " + line;
    const bool all_told = silent.size() <= kMostLines && rest.size() + num_unheard() == behind_.size();
    return all_told ? text
                    : fmt::format("{}\n  behind are {} ranks in all: {}", text, behind_.size(),
                                  ranges(numbers(behind_)));
  }
  size_t num_unheard() const {
    return static_cast<size_t>(
        std::count_if(behind_.begin(), behind_.end(), [](const RankState* state) { return !state->heard; }));
  }

  // Ranks that wait in the same operation or place share a line; the largest groups come first.
  std::string waiting_lines() const {
    std::map<std::pair<bool, std::string>, States> groups;
    for (const RankState* state : others_) groups[{!waits(*state), occupation(*state)}].push_back(state);
    std::vector<std::pair<std::string, States>> sorted;
    for (const auto& [key, states] : groups) {
      double since_s = 0;
      for (const RankState* state : states) since_s = std::max(since_s, state->beat_age_s);
      sorted.emplace_back(fmt::format("{}: {}, {} since {}", key.first ? "others" : "waiting for it",
                                      ranks_text(states), key.second, seconds(since_s)),
                          states);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
    std::string text;
    for (size_t i = 0; i < std::min(sorted.size(), kMostLines); ++i) text += "\n  " + sorted[i].first;
    size_t untold = 0;
    for (size_t i = kMostLines; i < sorted.size(); ++i) untold += sorted[i].second.size();
    return untold == 0 ? text : fmt::format("{}\n  and {} ranks elsewhere", text, untold);
  }

  // The first operation number under which ranks have started different operations.
  std::string mismatch() const {
    std::map<std::pair<int64_t, int64_t>, std::map<std::string, States>>
        operations;  // (pipeline stage, number)
    for (const RankState* state : inside_)
      if (latest_->num_points == state->num_points && state->started.number > 0)
        operations[{state->pipeline_stage, state->started.number}][text_of(state->started)].push_back(state);
    for (const auto& [key, kinds] : operations) {
      if (kinds.size() < 2) continue;
      std::string text;
      for (const auto& [kind, states] : kinds)
        text += fmt::format("{}{} started {}", text.empty() ? "\n  they differ: " : ", ", ranks_text(states),
                            kind);
      return kinds.size() <= kMostLines ? text + "; `shardmark run --check-collectives` finds where" : "";
    }
    return "";
  }

  std::string short_reason() const {
    if (behind_.empty()) return nobody_behind("");
    const RankState& first = *behind_.front();
    const bool alone = behind_.size() == 1;
    const std::string trouble = condition(first);
    std::string who = fmt::format("{} {}", ranks_text(behind_), nodes_text(behind_, node_map_));
    if (!trouble.empty()) who += " (" + trouble + ")";
    if (!first.heard || !first.is_inside()) return who + (alone ? " is behind" : " are behind");
    const std::string missing = missing_operation(first, others_);
    const bool in_operation = missing.empty() && first.awaited.number > 0;
    const std::string where = (in_operation ? text_of(first.awaited) + ", " : "") + place(first);
    if (missing.empty()) return fmt::format("{} {} in {}", who, alone ? "is" : "are", where);
    return fmt::format("{} {} not started {} in {}", who, alone ? "has" : "have", missing, where);
  }

  const NodeMap& node_map_;
  const RankState* latest_ = nullptr;
  double still_s_ = -1;
  States inside_;     // answering, and in a configuration
  States partaking_;  // those of inside_ that do not rest
  States behind_, others_;
};

}  // namespace

Diagnosis explain(std::vector<RankState> states, const NodeMap& node_map) {
  std::sort(states.begin(), states.end(),
            [](const RankState& a, const RankState& b) { return a.rank < b.rank; });
  return Explanation(states, node_map).finding();
}

std::string ranges(const std::vector<int64_t>& numbers) {
  constexpr int kMostRanges = 12;
  std::string text;
  int num_ranges = 0;
  for (size_t begin = 0; begin < numbers.size(); ++num_ranges) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (num_ranges == kMostRanges) return fmt::format("{} and {} more", text, numbers.size() - begin);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[begin]);
    if (end - begin > 1) text += fmt::format("-{}", numbers[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace shardmark
