// Expresses operations as messages between pairs of ranks (ncclSend, ncclRecv). This serves send_recv,
// all_to_all_v, and versions of NCCL before 2.28, which lack ncclAlltoAll, ncclGather and ncclScatter.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace shardmark {

struct Message {
  int peer = 0;
  at::Tensor out, in;  // from and to the peer; undefined: nothing
};

// The messages of this rank, all to be posted in one group. The k-th message that a rank sends to another
// matches the k-th that the other receives from it. `call` is all_to_all, all_to_all_v, gather, scatter or
// send_recv.
std::vector<Message> messages_of(const Call& call, int rank, int size);

}  // namespace shardmark
