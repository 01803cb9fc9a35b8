// The loop that writes one step of training, action by action. It is the only loop over what a rank computes.
#pragma once

#include <initializer_list>

#include "strategies/step_builder.h"

namespace shardmark::strategies {

// The policy of how a rank holds parameters, gradients, or both (sharded or whole), and when it moves them.
// Each hook is called around every action of the schedule and does nothing by default.
class Holder {
 public:
  Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  virtual ~Holder() = default;
  virtual void before(const Position&) {}
  virtual void after(const Position&) {}
  virtual void finish() {}   // afterwards, gradients are where the optimizer takes them from
  virtual void publish() {}  // afterwards, blocks see the updated parameters
};

// Asks the holders in this order before each action, and in reverse order after it. A schedule without
// backward becomes a program of forward alone.
Program write_step(StepBuilder& step, std::initializer_list<Holder*> holders);

}  // namespace shardmark::strategies
