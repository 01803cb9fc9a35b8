// A watchdog over MPI. Heartbeat pages lie in memory that the ranks of a node share; messages use a
// communicator of their own.
#pragma once

#include <functional>
#include <memory>

#include "comm/host_group.h"
#include "comm/watch/watchdog.h"

namespace shardmark {

// Makes the watchdog of this rank. Collective over the world, which must outlive it; it must be destroyed
// before MPI is finalized. end_job is called from the watchdog's thread after one rank has printed what was
// found. With timeout_s 0 the watchdog only keeps the heartbeat.
std::unique_ptr<Watchdog> make_watchdog(const HostGroup& world, const std::string& host, double timeout_s,
                                        std::function<void()> end_job);

// The parts of make_watchdog.
NodeMap gather_node_map(const HostGroup& world, const std::string& host);
// Returns zeroed pages, one for each rank of `node`, in rank order. All ranks of `node` must share memory.
// The name of the shared memory is removed as soon as all ranks have mapped it. Returns nullptr on all ranks
// if it cannot be shared (for example, with one container per rank). Collective over the node.
std::shared_ptr<HeartbeatPage[]> share_pages(const HostGroup& node);
// A channel for messages of at most most_bytes; longer ones are truncated. Making it is collective over the
// world.
std::unique_ptr<Channel> make_mpi_channel(const HostGroup& world, size_t most_bytes);

}  // namespace shardmark
