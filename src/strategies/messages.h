// What the stages of a pipeline send each other: outputs of the last block of a chunk to the rank with the
// next part of the model, gradients of its input back. A receive starts while the micro-batch before it
// computes, into a slot that keeps a block's input until nobody needs it; a send leaves from one of two
// slots.
#pragma once

#include "strategies/step.h"

namespace shardmark::strategies {

// Ranks of a pipeline are numbered in their team. Each pair of neighbours has a lane for each direction
// (TeamUse), so that a rank either sends or receives on it, to or from one other: messages keep their order
// there and wait for no other.
int64_t lane_of(int64_t from, int64_t to, int64_t stages, bool is_forward);
// Between the first stage and the last one, which share a tied group.
int64_t lane_of_ends();

class Messages : public Holder {
 public:
  explicit Messages(StepBuilder& step);
  void before(const Position& at) override;
  void after(const Position& at) override;
  void finish() override;

 private:
  // One direction: outputs, or gradients.
  struct Direction {
    bool is_forward = true;
    std::vector<size_t> receiving;             // positions, in order
    std::vector<Slice> slots;                  // [receive of the step]
    std::vector<Operations> receives;          // [receive], those that have started
    std::vector<Slice> out = {};               // to send from
    std::vector<Operations> sends = {{}, {}};  // [slot]
    size_t num_received = 0, num_sent = 0;
  };
  struct Place {
    const specs::Chunk* chunk = nullptr;
    bool receives = false, sends = false;
  };
  Place place_of(const Action& action, bool is_forward) const;
  void plan(Direction& direction, const std::vector<Position>& positions, const char* name);
  void start_receive(Direction& direction, size_t number);
  void receive(Direction& direction);
  void reserve(Direction& direction, const Position& at);
  int64_t numel_of(const Action& action, bool is_forward, bool is_received) const;

  StepBuilder& step_;
  const std::vector<Position>& positions_;
  Direction outputs_, gradients_;
};

}  // namespace shardmark::strategies
