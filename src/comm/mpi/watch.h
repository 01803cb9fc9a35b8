// A watchdog over MPI: pages in memory that a node's ranks share, messages on a communicator of its own.
#pragma once

#include <functional>
#include <memory>

#include "comm/host_group.h"
#include "comm/watch/watchdog.h"

namespace shardmark {

// Of this rank. Collective over the world, which outlives it. It must be gone before MPI ends. end_job:
// called from the watchdog's thread after one rank has printed what was found. timeout_s 0: only keeps
// the notes.
std::unique_ptr<Watchdog> make_watchdog(const HostGroup& world, const std::string& host, double timeout_s,
                                        std::function<void()> end_job);

// Its parts.
NodeMap gather_node_map(const HostGroup& world, const std::string& host);
// Zeroed pages of the ranks of `node`, all of which share memory, in their order; gone from the system's
// names as soon as all have them. Where they cannot be shared (a container for each rank), nullptr on all of
// them. Collective over the node.
std::shared_ptr<HeartbeatPage[]> share_pages(const HostGroup& node);
// Messages of at most most_bytes; longer ones are cut. Collective over the world to make.
std::unique_ptr<Channel> make_mpi_channel(const HostGroup& world, size_t most_bytes);

}  // namespace shardmark
