// The nccl transport: GPU memory, a stream of its own, operations ordered by events. See README.md.
#pragma once

#include "comm/communicator.h"

namespace shardmark {

// Collective over the ranks of `group`; each with a GPU of its own. UsageError: no GPU, more ranks than GPUs
// on a node.
std::unique_ptr<Communicator> make_nccl_communicator(const HostGroup& group, at::Device device);

}  // namespace shardmark
