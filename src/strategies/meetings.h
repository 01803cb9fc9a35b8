// Operations of several stages of a pipeline, as their simulation (simulate.h) sees them: who has started
// them, when they end, and where two ends do not fit.
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

// A stage's part in an operation of several stages.
struct End {
  size_t stage;
  const CollectiveCall* call;
  const Program* program;
  size_t instruction;  // that starts it
};
// "forward of block 3, micro-batch 0": what a rank computed last before an instruction.
std::string place_before(const Program& program, size_t instruction);

// An operation of several stages, a message or one of all: it begins when all have started it and the one
// before it on the same communicator has ended.
struct Meeting {
  size_t num_ends = 0;   // when nobody is missing
  size_t num_begun = 0;  // for who counts them (serving.h)
  std::vector<End> ends = {};
  bool all_have_begun() const { return num_begun == num_ends; }
  double started_s = 0, seconds = 0;
  std::optional<double> began_s = {};
};

class Meetings {
 public:
  explicit Meetings(size_t num_stages) : num_stages_(num_stages) {}

  // The next operation of this stage on that communicator; it stays where it is.
  Meeting* start(End end, double now_s = 0, double seconds = 0);
  const std::string& wrong() const { return wrong_; }  // two ends that do not fit
  std::string unmet() const;                           // an end without the others

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // a communicator, and the stages of a message
  struct Channel {
    std::deque<Meeting> meetings = {};  // in their order
    size_t num_ended = 0;
    double free_s = 0;                          // when the last one ended
    std::map<size_t, size_t> num_started = {};  // [stage]
  };
  static void end_all(Channel& channel);

  size_t num_stages_;
  std::map<Key, Channel> channels_;
  std::string wrong_;
};

// Steps that are played: operations reach into the next step, not farther.
inline constexpr int kPlayedSteps = 2;

// Plays the ranks of all stages ([stage]) until all are through; else what keeps them, in one line. A rank
// has advance() (as far as it gets without the others; whether that is any farther), is_done() and place().
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
