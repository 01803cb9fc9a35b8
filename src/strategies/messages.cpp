// Finds the receives of a step, and decides when each starts and which slot it fills.
#include "strategies/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace shardmark::strategies {
namespace {

// The pairs of neighbours (r, r + 1) in a ring of `stages` ranks fall into classes, such that two pairs that
// share a rank are in different ones. An odd ring needs three.
int64_t class_of(int64_t pair, int64_t stages) {
  return pair + 1 == stages && stages % 2 == 1 ? 2 : pair % 2;
}
constexpr int64_t kNumClasses = 3;

bool splits_backward(const std::vector<Position>& positions) {
  return std::any_of(positions.begin(), positions.end(),
                     [](const Position& at) { return at.is(Compute::backward_weight); });
}

}  // namespace

// There are four kinds of messages: outputs and gradients, each to the next or to the previous rank of the
// ring. Every kind has one lane for each class of pairs.
int64_t lane_of(int64_t from, int64_t to, int64_t stages, bool is_forward) {
  const bool goes_up = to == (from + 1) % stages;
  const int64_t pair = goes_up ? from : to;
  return kFirstMessageLane + (2 * (is_forward ? 0 : 1) + (goes_up ? 0 : 1)) * kNumClasses +
         class_of(pair, stages);
}

int64_t lane_of_ends() { return kFirstMessageLane + 4 * kNumClasses; }

Messages::Messages(StepBuilder& step) : step_(step), positions_(step.positions()) {
  const std::vector<specs::Chunk>& chunks = step.program().chunks;
  if (std::none_of(chunks.begin(), chunks.end(),
                   [](const auto& chunk) { return chunk.receives || chunk.sends; }))
    return;
  // An evaluation uses the memory of a training step. So slots are planned for the whole step, even if this
  // program has forward alone.
  const std::vector<Position> of_step = step.trains() ? positions_ : step.positions_of_step();
  directions_ = {{.is_forward = true}, {.is_forward = false}};
  if (step.input().stage().placement == Placement::v)
    directions_.insert(directions_.end(),
                       {{.is_forward = true, .is_back = true}, {.is_forward = false, .is_back = true}});
  for (Direction& direction : directions_) {
    const std::string what = fmt::format("{}{}", direction.is_forward ? "outputs" : "gradients",
                                         direction.is_back ? " on the way back" : "");
    plan(direction, of_step, "received " + what);
    int64_t most = 0;
    for (const Position& at : of_step)
      if (place_of(at.action, direction).sends)
        most = std::max(most, numel_of(at.action, direction.is_forward, /*is_received=*/false));
    for (const int slot : {0, 1})
      if (most > 0)
        direction.out.push_back(step.allocate(fmt::format("sent {}, slot {}", what, slot), Use::transient,
                                              Element::compute, most));
    if (!step.trains()) {  // an evaluation: its receives are the first ones of a step
      direction.receiving.clear();
      for (size_t i = 0; i < positions_.size(); ++i)
        if (place_of(positions_[i].action, direction).receives) direction.receiving.push_back(i);
    }
    direction.receives.resize(direction.receiving.size());
  }
}

Messages::Place Messages::place_of(const Action& action, const Direction& direction) const {
  const bool is_forward = direction.is_forward;
  const bool computes = is_forward
                            ? action.what == Compute::forward
                            : action.what == Compute::backward || action.what == Compute::backward_input;
  if (!computes) return {};
  const std::vector<specs::Chunk>& chunks = step_.program().chunks;
  const auto chunk = std::find_if(chunks.begin(), chunks.end(), [&](const specs::Chunk& one) {
    return action.block >= one.begin && action.block < one.end;
  });
  const bool has_before = action.block == chunk->begin && chunk->receives,
             has_after = action.block + 1 == chunk->end && chunk->sends;
  const Stage stage = step_.input().stage();
  const int64_t number = chunk - chunks.begin(), part = stage.part(number);
  if (stage.placement == Placement::v && (number % 2 == 1) != direction.is_back) return {};
  const int64_t before = has_before ? stage.rank_of(part - 1) : 0,
                after = has_after ? stage.rank_of(part + 1) : 0;
  return is_forward ? Place{has_before, has_after, before, after}
                    : Place{has_after, has_before, after, before};
}

// A received output is a block's input, and a received gradient has the size of a block's output. What is
// sent is the other way round.
int64_t Messages::numel_of(const Action& action, bool is_forward, bool is_received) const {
  const specs::BlockSpec& block = step_.input().model.blocks[static_cast<size_t>(action.block)];
  const int64_t each = is_forward == is_received ? block.input_elements() : block.output_elements();
  return each * step_.input().samples;
}

// Assigns to each receive of a step the first slot that is free when it starts. A receive starts when the
// one before it has arrived (see receive()), so that its slot has to be free from that position on. The
// slot is in use until the block's backward on this micro-batch, which reads it last.
void Messages::plan(Direction& direction, const std::vector<Position>& positions, const std::string& name) {
  // The position after which a block's received input and output gradient are no longer read.
  const Compute last = splits_backward(positions) ? Compute::backward_weight : Compute::backward;
  std::map<std::pair<int64_t, int64_t>, size_t> last_of;  // (block, micro-batch)
  for (size_t i = 0; i < positions.size(); ++i)
    if (positions[i].is(last)) last_of[{positions[i].action.block, positions[i].action.micro_batch}] = i;
  std::set<size_t> free;                       // slots
  std::set<std::pair<size_t, size_t>> in_use;  // (the first position at which it is free, slot)
  size_t num_slots = 0;
  std::vector<size_t> slot_of;
  int64_t most = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!place_of(positions[i].action, direction).receives) continue;
    const size_t starts = direction.receiving.empty() ? i : direction.receiving.back();
    const auto end = last_of.find({positions[i].action.block, positions[i].action.micro_batch});
    const size_t ends = end == last_of.end() ? i : std::max(i, end->second);
    for (; !in_use.empty() && in_use.begin()->first <= starts; in_use.erase(in_use.begin()))
      free.insert(in_use.begin()->second);
    if (free.empty()) free.insert(num_slots++);
    const size_t slot = *free.begin();
    free.erase(free.begin());
    in_use.emplace(ends + 1, slot);
    most = std::max(most, numel_of(positions[i].action, direction.is_forward, /*is_received=*/true));
    slot_of.push_back(slot);
    direction.receiving.push_back(i);
  }
  std::vector<Slice> memory;
  for (size_t s = 0; s < num_slots; ++s)
    memory.push_back(
        step_.allocate(name + ", slot " + std::to_string(s), Use::transient, Element::compute, most));
  for (const size_t slot : slot_of) direction.slots.push_back(memory[slot]);
}

void Messages::start_receive(Direction& direction, size_t number) {
  if (number >= direction.receiving.size() || direction.receives[number].count > 0) return;
  const Position& at = positions_[direction.receiving[number]];
  const int64_t numel = numel_of(at.action, direction.is_forward, /*is_received=*/true);
  direction.slots[number].numel = numel;
  const int64_t from = place_of(at.action, direction).from;
  direction.receives[number] = step_.receive(direction.slots[number], from, direction.is_forward);
}

// Waits for the next message and starts the receive after it. So the next message travels while this
// micro-batch computes. Only the first receive of a step is started here right before its wait.
void Messages::receive(Direction& direction) {
  const size_t number = direction.num_received++;
  start_receive(direction, number);
  start_receive(direction, number + 1);
  step_.wait(direction.receives[number]);
  step_.takes(direction.slots[number]);
}

// The block is about to write its output into one of the two slots. The send that left from that slot, two
// messages ago, must have ended.
void Messages::reserve(Direction& direction, const Position& at) {
  const size_t slot = direction.num_sent % 2;
  step_.wait(direction.sends[slot]);
  step_.gives(direction.out[slot].first(numel_of(at.action, direction.is_forward, /*is_received=*/false)));
}

void Messages::before(const Position& at) {
  for (Direction& direction : directions_) {
    const Place place = place_of(at.action, direction);
    if (place.receives) receive(direction);
    if (place.sends) reserve(direction, at);
  }
}

void Messages::after(const Position& at) {
  for (Direction& direction : directions_) {
    const Place place = place_of(at.action, direction);
    if (!place.sends) continue;
    const size_t slot = direction.num_sent++ % 2;
    const int64_t numel = numel_of(at.action, direction.is_forward, /*is_received=*/false);
    direction.sends[slot] = step_.send(direction.out[slot].first(numel), place.to, direction.is_forward);
  }
}

void Messages::finish() {
  for (Direction& direction : directions_)
    for (Operations& send : direction.sends) step_.wait(send);
}

}  // namespace shardmark::strategies
