// A communicator that wraps another one and compares every operation across its ranks before it starts. Ranks
// that disagree then fail with a message that names them, instead of hanging. Each operation waits for all
// ranks on the host, so times measured with it mean nothing.
#pragma once

#include <stdexcept>
#include <vector>

#include "comm/communicator.h"
#include "comm/in_step.h"

namespace shardmark {

struct MismatchedOperation : std::runtime_error, OnAllRanks {
  using std::runtime_error::runtime_error;
};

// `group` has the ranks of `inner`, in the same order. If an operation differs in name, bytes, element type,
// reduction or root, all ranks throw the same MismatchedOperation, and it does not start. A rank that starts
// no operation keeps the others waiting until the watchdog names it. For send_recv only the name is compared.
// A one-way send_recv is not compared at all, because only two ranks take part in it.
std::unique_ptr<Communicator> make_checked(std::unique_ptr<Communicator> inner, HostGroup group);

// What a rank is about to start.
struct Announcement {
  int64_t rank = 0;  // in the world
  std::string host;
  std::string operation;  // "all_gather of 4,194,304 B Float"
};
// Returns an empty text if all announcements are the same. Otherwise it says who starts what, the smallest
// set of ranks first: "rank 2 on node1 starts reduce_scatter ..., ranks 0-1, 3 all_gather ...".
std::string difference(const std::vector<Announcement>& announcements);

}  // namespace shardmark
