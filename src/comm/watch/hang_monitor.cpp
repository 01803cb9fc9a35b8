// The protocol of Note [HangMonitor]: questions, answers, and the verdict.
#include "comm/watch/hang_monitor.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace shardmark {
namespace {

// The first letter of a message is its kind; the number of the inquiry and the content follow.
constexpr char kAsk = '?', kAnswer = '=', kFound = '!';
static_assert(std::is_trivially_copyable_v<RankState>);

std::string pack(char number, const std::vector<RankState>& states) {
  std::string bytes{kAnswer, number};
  bytes.append(reinterpret_cast<const char*>(states.data()), states.size() * sizeof(RankState));
  return bytes;
}

std::vector<RankState> unpack(const std::string& bytes) {
  std::vector<RankState> states((bytes.size() - 2) / sizeof(RankState));
  std::memcpy(states.data(), bytes.data() + 2, states.size() * sizeof(RankState));
  return states;
}

std::vector<RankState> unheard(const std::vector<int>& ranks) {
  std::vector<RankState> states(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) states[i].rank = ranks[i];
  return states;
}

}  // namespace

HangMonitor::HangMonitor(const NodeHeartbeats& heartbeats, const NodeMap& node_map, int rank,
                         Channel& channel, const HangMonitorOptions& options)
    : heartbeats_(heartbeats),
      node_map_(node_map),
      rank_(rank),
      node_(node_map.node_of[static_cast<size_t>(rank)]),
      channel_(channel),
      options_(options) {}

HangMonitor::Order HangMonitor::look(double now_s) {
  // If this process was itself stopped for a while, it does not judge at once, because its own rank has had
  // no time to make progress.
  const double pause_s = now_s - heartbeats_.own().looked_s.exchange(now_s);
  if (pause_s > options_.silent_s) not_before_s_ = std::max(not_before_s_, now_s + options_.silent_s);
  if (auto reason = read_messages(now_s)) return {{}, std::move(reason), true};
  if (end_s_) return {{}, {}, now_s >= *end_s_};
  if (now_s < due_s(now_s) || !speaks(now_s)) {
    inquiry_.reset();
    return {};
  }
  Inquiry& inquiry = inquiry_ ? *inquiry_ : ask(now_s);
  if (!inquiry.asked_all && now_s >= inquiry.began_s + options_.answer_s) ask_again(inquiry);
  if (!is_answered(inquiry, now_s)) return {};
  Order order = judge(inquiry.answers, now_s);
  inquiry_.reset();
  return order;
}

// Answers questions. Returns the reason if another rank has reported a finding.
std::optional<std::string> HangMonitor::read_messages(double now_s) {
  while (const auto message = channel_.receive()) {
    const int node = node_map_.node_of[static_cast<size_t>(message->from)];
    const std::string& bytes = message->bytes;  // always two letters or more
    if (bytes[0] == kAsk) {
      channel_.send(message->from, pack(bytes[1], heartbeats_.read(now_s, options_.silent_s)));
      if (node < node_) not_before_s_ = std::max(not_before_s_, now_s + options_.timeout_s);
    } else if (bytes[0] == kAnswer) {
      if (inquiry_) take_answer(*inquiry_, node, bytes, now_s);
    } else if (bytes[0] == kFound) {
      return bytes.substr(2);
    }
  }
  return {};
}

// Several ranks of a node may answer, and a later answer replaces an earlier one. Only a node's first
// answer extends the time that is_answered() waits.
void HangMonitor::take_answer(Inquiry& inquiry, int node, const std::string& bytes, double now_s) {
  if (inquiry.number != bytes[1]) return;
  if (inquiry.answers.insert_or_assign(node, unpack(bytes)).second) inquiry.heard_s = now_s;
}

// The first moment at which no rank of this node has made progress for the timeout, and no other node is
// known to be asking or to make progress; plus the head start of the nodes before this one. That is
// head_start_s for node 1, twice as much for node 2, and a second more for each further node.
double HangMonitor::due_s(double now_s) const {
  const double age_s = heartbeats_.least_age_s(now_s);
  if (age_s < options_.timeout_s) return std::numeric_limits<double>::infinity();  // or nobody is inside
  const double head_start = options_.head_start_s * std::min(node_, 2) + 1.0 * std::max(node_ - 2, 0);
  return std::max(now_s - age_s + options_.timeout_s, not_before_s_) + head_start;
}

// The lowest rank that answers speaks for its node. All ranks of the node read the same pages, so that they
// agree on it without a message.
bool HangMonitor::speaks(double now_s) const {
  for (const RankState& state : heartbeats_.read(now_s, options_.silent_s))
    if (state.answers) return state.rank == rank_;
  return false;
}

HangMonitor::Inquiry& HangMonitor::ask(double now_s) {
  Inquiry& inquiry = inquiry_.emplace(Inquiry{++num_inquiries_, now_s, now_s, false, {}});
  for (const auto& ranks : node_map_.ranks_of)
    if (node_map_.node_of[static_cast<size_t>(ranks.front())] != node_)
      channel_.send(ranks.front(), {kAsk, inquiry.number});
  return inquiry;
}

void HangMonitor::ask_again(Inquiry& inquiry) {
  inquiry.asked_all = true;
  for (const auto& ranks : node_map_.ranks_of) {
    const int node = node_map_.node_of[static_cast<size_t>(ranks.front())];
    if (node == node_ || inquiry.answers.contains(node)) continue;
    for (size_t i = 1; i < ranks.size(); ++i) channel_.send(ranks[i], {kAsk, inquiry.number});
  }
}

// All nodes have answered, or no more answers are expected.
bool HangMonitor::is_answered(const Inquiry& inquiry, double now_s) const {
  return inquiry.answers.size() + 1 == node_map_.names.size() ||
         now_s >= std::max(inquiry.began_s + 2 * options_.answer_s, inquiry.heard_s + options_.answer_s / 2);
}

// Puts the states of all nodes together; ranks of a node that did not answer count as unheard. If some rank
// has made progress within the timeout, nobody hangs yet, and this node asks again when that rank, too, has
// stood still for as long.
HangMonitor::Order HangMonitor::judge(const Answers& answers, double now_s) {
  std::vector<RankState> states;
  for (size_t node = 0; node < node_map_.names.size(); ++node) {
    const auto answer = answers.find(static_cast<int>(node));
    const std::vector<RankState> part = static_cast<int>(node) == node_
                                            ? heartbeats_.read(now_s, options_.silent_s)
                                        : answer != answers.end() ? answer->second
                                                                  : unheard(node_map_.ranks_of[node]);
    states.insert(states.end(), part.begin(), part.end());
  }
  double least_s = std::numeric_limits<double>::infinity();
  for (const RankState& state : states)
    if (state.is_inside()) least_s = std::min(least_s, state.beat_age_s);
  if (least_s < options_.timeout_s) {
    not_before_s_ = now_s + options_.timeout_s - least_s;
    return {};
  }
  const bool rank_0_answers =
      std::any_of(states.begin(), states.end(), [](const RankState& s) { return s.rank == 0 && s.answers; });
  return speak(explain(std::move(states), node_map_), rank_0_answers, now_s);
}

// Rank 0 owns the study. It records the finding, then ends the job; a rank that spoke waits for that.
HangMonitor::Order HangMonitor::speak(const Diagnosis& finding, bool rank_0_answers, double now_s) {
  if (rank_ == 0) return {finding, finding.reason, true};
  if (rank_0_answers) channel_.send(0, std::string{kFound, ' '} + finding.reason);
  end_s_ = now_s + (rank_0_answers ? options_.record_s : 0);
  return {finding, {}, !rank_0_answers};
}

}  // namespace shardmark
