// Operations that involve several stages of a pipeline, for the simulations that play all stages together
// (simulate.h with clocks, serving.h without): which stages have started an operation, when it begins and
// ends, and whether what two stages expect of each other matches.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strategies/program.h"

namespace shardmark::strategies {

// The part of one stage in an operation of several stages.
struct End {
  size_t stage;
  const CollectiveCall* call;
  const Program* program;
  size_t instruction;  // the one that starts the call
};
// What a rank computed last before an instruction, for example "forward of block 3, micro-batch 0".
std::string place_before(const Program& program, size_t instruction);

// One operation of several stages: a message between two, or a collective of all. It begins when all of them
// have started it, and the previous operation on the same communicator has ended.
struct Meeting {
  size_t num_ends = 0;   // number of stages that take part
  size_t num_begun = 0;  // stages on which the transport has begun it; counted by serving.cpp
  std::vector<End> ends = {};
  bool all_have_begun() const { return num_begun == num_ends; }
  double started_s = 0, seconds = 0;
  std::optional<double> began_s = {};
};

class Meetings {
 public:
  explicit Meetings(size_t num_stages) : num_stages_(num_stages) {}

  // Adds a stage to the next operation that it has not started yet on this communicator. The pointer stays
  // valid.
  Meeting* start(End end, double now_s = 0, double seconds = 0);
  const std::string& wrong() const { return wrong_; }  // two ends that do not match, in words; or empty
  std::string unmet() const;                           // an operation that a stage did not take part in

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // communicator, and stages of a message
  struct Channel {
    std::deque<Meeting> meetings = {};  // in the order of their starts
    size_t num_ended = 0;
    double free_s = 0;                          // when the last operation ended
    std::map<size_t, size_t> num_started = {};  // [stage]
  };
  static void end_all(Channel& channel);

  size_t num_stages_;
  std::map<Key, Channel> channels_;
  std::string wrong_;
};

// The number of steps that are played. Operations of one step may end in the next one, but no later.
inline constexpr int kPlayedSteps = 2;

// Plays the ranks of all stages ([stage]) until all have finished, or returns in one line why they cannot. A
// rank has advance(), which runs until it needs another rank and returns whether it got any farther,
// is_done() and place().
template <class Ranks>
std::string play_all(Ranks& ranks, const Meetings& meetings) {
  for (bool is_farther = true; std::exchange(is_farther, false);)
    for (auto& rank : ranks)
      if (rank.advance()) is_farther = true;
  if (!meetings.wrong().empty()) return meetings.wrong();
  std::string waiting;
  for (size_t stage = 0; stage < ranks.size(); ++stage)
    if (!ranks[stage].is_done())
      waiting += (waiting.empty() ? "stage " : ", stage ") + std::to_string(stage) + " after " +
                 ranks[stage].place();
  return waiting.empty() ? meetings.unmet() : "these wait for ever: " + waiting;
}

}  // namespace shardmark::strategies
