// Matches the operations of stages by communicator, in the order in which each stage starts them.
#include "strategies/meetings.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardmark::strategies {
namespace {

bool is_message(const CollectiveCall& call) { return call.what == Collective::send_recv; }

std::string to_text(const End& end) {
  const CollectiveCall& call = *end.call;
  const std::string does = !is_message(call)     ? "starts " + call.name() + " of"
                           : call.out.numel == 0 ? "sends"
                           : call.in.numel == 0  ? "receives"
                                                 : "exchanges";
  return fmt::format("stage {} {} {} bytes after {}", end.stage, does, call.bytes,
                     place_before(*end.program, end.instruction));
}

bool fit(const CollectiveCall& one, const CollectiveCall& other) {
  const bool matches = one.what == other.what && one.bytes == other.bytes;
  return matches &&
         (!is_message(one) || (one.in.numel == other.out.numel && one.out.numel == other.in.numel));
}

}  // namespace

std::string place_before(const Program& program, size_t instruction) {
  for (size_t i = instruction; i-- > 0;) {
    const Instruction& done = program.instructions[i];
    if (!done.is_compute() || done.what == Instruction::What::data) continue;
    if (done.what == Instruction::What::update) return "its last backward";
    const char* what = done.what == Instruction::What::forward     ? "forward"
                       : done.what == Instruction::What::recompute ? "forward again"
                                                                   : "backward";
    return fmt::format("{} of block {}, micro-batch {}", what, program.block_of_model(done.index),
                       done.micro_batch);
  }
  return "its step begins";
}

// A communicator serves operations in the order in which they were started. The n-th operation that a stage
// starts on it is therefore the n-th of every other stage that takes part, whatever the stages meant. If
// the two do not match in kind and size, the programs are wrong, and the first such pair is reported. A
// message has a channel for each pair of stages; a collective has one for all stages.
Meeting* Meetings::start(End end, double now_s, double seconds) {
  const CollectiveCall& call = *end.call;
  const auto own = static_cast<int64_t>(end.stage);
  const int64_t other = is_message(call) ? call.root.value_or(own) : -1;
  const Key key{call.process_group.stride, call.lane, std::min(own, other),
                is_message(call) ? std::max(own, other) : -1};
  Channel& channel = channels_[key];
  const size_t number = channel.num_started[end.stage]++;
  while (channel.meetings.size() <= number)
    channel.meetings.push_back({.num_ends = is_message(call) ? 2 : num_stages_});
  Meeting& meeting = channel.meetings[number];
  if (!meeting.ends.empty() && !fit(call, *meeting.ends.front().call) && wrong_.empty())
    wrong_ = to_text(meeting.ends.front()) + ", where " + to_text(end);
  meeting.ends.push_back(std::move(end));
  meeting.started_s = std::max(meeting.started_s, now_s);
  meeting.seconds = std::max(meeting.seconds, seconds);
  end_all(channel);
  return &meeting;
}

std::string Meetings::unmet() const {
  for (const auto& [key, channel] : channels_)
    for (const Meeting& meeting : channel.meetings)
      if (!meeting.began_s) return to_text(meeting.ends.front()) + ", which no other stage takes part in";
  return {};
}

// Operations of a channel begin one after the other: each when all its stages have started it, and the one
// before has ended. The first one that lacks a stage holds up those behind it.
void Meetings::end_all(Channel& channel) {
  for (; channel.num_ended < channel.meetings.size(); ++channel.num_ended) {
    Meeting& meeting = channel.meetings[channel.num_ended];
    if (meeting.ends.size() < meeting.num_ends) return;
    meeting.began_s = std::max(channel.free_s, meeting.started_s);
    channel.free_s = *meeting.began_s + meeting.seconds;
  }
}

}  // namespace shardmark::strategies
