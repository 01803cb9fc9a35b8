// The load that a rank runs together with a collective, one unit at a time: the choices of the axis `beside`
// (strategies/choice_kinds.cpp).
#pragma once

#include <memory>

#include "sweep/workloads/workload.h"

namespace shardmark {

class SideLoad {
 public:
  virtual ~SideLoad() = default;
  virtual void allocate() = 0;  // takes memory; makes no collective calls
  virtual void unit() = 0;      // enqueues one unit; a collective also waits for it
  // The device queue of its units, if they have one of their own: their end is marked there. Empty: the
  // compute queue.
  virtual std::shared_ptr<void> queue() { return nullptr; }
};

// Collective, because the load `collective` makes a communicator of its own.
std::unique_ptr<SideLoad> make_load(const WorkloadContext& context);

}  // namespace shardmark
