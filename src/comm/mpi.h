// The mpi transport: host memory, operations that progress when this rank polls or waits, or by a thread. See
// README.md.
#pragma once

#include "comm/communicator.h"

namespace shardmark {

// Collective over the ranks of `group`.
std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, MovedBy moved_by);

}  // namespace shardmark
