// One step of training, written action by action: the only loop over what a rank computes.
#pragma once

#include <initializer_list>

#include "strategies/step_builder.h"

namespace shardmark::strategies {

// What a rank holds of parameters, of gradients, or of both, and when it moves. Each hook does nothing unless
// a holder says otherwise.
class Holder {
 public:
  Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  virtual ~Holder() = default;
  virtual void before(const Position&) {}
  virtual void after(const Position&) {}
  virtual void finish() {}   // gradients are where the optimizer takes them from
  virtual void publish() {}  // what the optimizer has changed is where blocks see it
};

// holders: asked in this order, after an action in the reverse one. An order without backward is forward
// alone.
Program write_step(StepBuilder& step, std::initializer_list<Holder*> holders);

}  // namespace shardmark::strategies
