// A communicator around another one that compares every operation across its ranks before it starts, so that
// ranks which disagree fail with their names instead of hanging. Each operation then waits for all ranks on
// the host: no time that is measured means anything.
#pragma once

#include <stdexcept>
#include <vector>

#include "comm/communicator.h"
#include "comm/in_step.h"

namespace shardmark {

struct MismatchedOperation : std::runtime_error, OnAllRanks {
  using std::runtime_error::runtime_error;
};

// group: the ranks of `inner`, in their order. An operation that differs in name, bytes, element type,
// reduction or root throws the same MismatchedOperation on all ranks, and does not start. A rank that starts
// none keeps the others waiting: the watchdog names it. Of send_recv the name alone is compared,
// and nothing of one that goes one way, in which two ranks alone take part.
std::unique_ptr<Communicator> make_checked(std::unique_ptr<Communicator> inner, HostGroup group);

// What a rank is about to start.
struct Announcement {
  int64_t rank = 0;  // of the world
  std::string host;
  std::string operation;  // "all_gather of 4,194,304 B Float"
};
// Empty where all are the same, else who starts what, the fewest ranks first: "rank 2 on node1 starts
// reduce_scatter ..., ranks 0-1, 3 all_gather ...".
std::string difference(const std::vector<Announcement>& announcements);

}  // namespace shardmark
