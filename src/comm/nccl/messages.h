// Operations as messages between two ranks each: for an NCCL that has no function of its own for them
// (ncclAlltoAll, ncclGather and ncclScatter came with 2.28), and for send_recv, which is nothing else.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace shardmark {

struct Message {
  int peer = 0;
  at::Tensor out, in;  // what comes from the peer, what goes there; undefined: nothing
};

// Of this rank, all to be in flight together; the k-th that a rank sends to another is the k-th that this one
// receives from it. call: all_to_all, all_to_all_v, gather, scatter or send_recv.
std::vector<Message> messages_of(const Call& call, int rank, int size);

}  // namespace shardmark
