// What a rank does beside a collective: the choices of the axis `beside` (strategies/beside.h), a unit at a
// time.
#pragma once

#include <memory>

#include "sweep/workloads/workload.h"

namespace shardmark {

class SideLoad {
 public:
  virtual ~SideLoad() = default;
  virtual void allocate() = 0;  // its memory; no calls
  virtual void unit() = 0;      // enqueues one; of a collective starts it and waits
  // A queue of its own on the device, on which its units are to be marked; empty: the computing one.
  virtual std::shared_ptr<void> queue() { return nullptr; }
};

// Collective, for the communicator of another collective.
std::unique_ptr<SideLoad> make_load(const WorkloadContext& context);

}  // namespace shardmark
