// Which cores each rank of a node gets: a pure function of the node's topology and of what the launcher left.
#pragma once

#include <string>
#include <vector>

#include "doctor/ranges.h"

namespace shardmark::doctor {

struct Core {  // a physical one
  int numa = 0;
  Numbers cpus;  // its logical processors
};

struct Seat {         // a rank of the node, before it is bound
  Numbers allowed;    // logical processors that it may run on
  int gpu_numa = -1;  // NUMA node of its GPU; -1: none, or nobody knows
};

struct Binding {
  std::vector<Numbers> cpus;  // of each rank; empty: all stay as they are
  bool by_launcher = false;   // they do because they are bound already
};

// Equally many whole cores for each rank, none shared: near its GPU where there is one, else spread evenly
// over the NUMA nodes; a rank crosses no border between NUMA nodes unless it gets several whole ones. Ranks
// stay as they are where a launcher bound them already (they may run on different processors), where one rank
// has the node to itself, and where cores are fewer than ranks. quota: cores that the control group grants,
// 0: no limit.
Binding assign_cores(std::vector<Core> cores, const std::vector<Seat>& seats, double quota);

}  // namespace shardmark::doctor
