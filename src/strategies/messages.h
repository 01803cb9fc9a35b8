// The messages between pipeline stages: the output of a chunk's last block goes to the rank that has the next
// part of the model, and the gradient of a chunk's input goes back. A receive is started while the previous
// micro-batch computes, into a slot that keeps the block's input until its backward is done. A send leaves
// from one of two slots, so that the next output can be computed while the previous one is being sent.
#pragma once

#include "strategies/step_builder.h"

namespace shardmark::strategies {

// The lane (ProcessGroupUse) of a message. Each pair of neighbours has a lane for each direction of outputs
// and of gradients, so that on one communicator a rank only sends to or only receives from one other rank.
// Messages therefore stay in order, and none waits for another pair's or for one of another kind. Ranks are
// numbered within their pipeline.
int64_t lane_of(int64_t from, int64_t to, int64_t stages, bool is_forward);
// The lane between the first stage and the last, which may share a tied group.
int64_t lane_of_ends();

class Messages : public ShardingPolicy {
 public:
  explicit Messages(StepBuilder& step);
  void before(const Position& at) override;
  void after(const Position& at) override;
  void finish() override;

 private:
  // All messages in one direction: outputs, or gradients. If parts are placed there and back, those of each
  // way are a direction of their own, since they go to other ranks and must not wait for each other.
  struct Direction {
    bool is_forward = true, is_back = false;
    std::vector<size_t> receiving = {};        // positions that receive, in order
    std::vector<Slice> slots = {};             // [number of the receive in the step]
    std::vector<Operations> receives = {};     // [number of the receive]: those that have started
    std::vector<Slice> out = {};               // the two slots to send from
    std::vector<Operations> sends = {{}, {}};  // [slot]
    size_t num_received = 0, num_sent = 0;
  };
  // What the message before or after an action is, and the rank at its other end.
  struct Place {
    bool receives = false, sends = false;
    int64_t from = 0, to = 0;
  };
  Place place_of(const Action& action, const Direction& direction) const;
  void plan(Direction& direction, const std::vector<Position>& positions, const std::string& name);
  void start_receive(Direction& direction, size_t number);
  void receive(Direction& direction);
  void reserve(Direction& direction, const Position& at);
  int64_t numel_of(const Action& action, bool is_forward, bool is_received) const;

  StepBuilder& step_;
  const std::vector<Position>& positions_;
  std::vector<Direction> directions_;
};

}  // namespace shardmark::strategies
