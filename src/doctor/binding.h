// Which cores each rank of a node gets. This is a pure function of the node's topology and of what the
// launcher allows.
#pragma once

#include <string>
#include <vector>

#include "base/ranges.h"

namespace shardmark::doctor {

struct Core {  // a physical core
  int numa = 0;
  Numbers cpus;  // its logical processors
};

struct Seat {         // a rank of the node before it is bound
  Numbers allowed;    // logical processors that it may run on
  int gpu_numa = -1;  // NUMA node of its GPU; -1: none or unknown
};

struct Binding {
  std::vector<Numbers> cpus;  // [rank]; empty: ranks stay as they are
  bool by_launcher = false;   // they stay because they are already bound
};

// Gives each rank equally many whole cores that no other rank uses. They are near the rank's GPU if it has
// one; otherwise ranks are spread evenly over the NUMA nodes. A rank's cores lie in one NUMA node, unless it
// gets several whole ones. Ranks stay as they are if a launcher has bound them already (they may run on
// different processors), if a rank has the node to itself, or if there are fewer cores than ranks. `quota` is
// the number of cores that the control group grants; 0 means no limit.
Binding assign_cores(std::vector<Core> cores, const std::vector<Seat>& seats, double quota);

}  // namespace shardmark::doctor
