// The transports, each in a folder of its own; make_communicator (communicator.h) makes them by name.
#pragma once

#include "comm/communicator.h"
#include "schema/choice.h"
#include "strategies/pipeline.h"

namespace shardmark {

// mpi: host memory, operations that progress when this rank polls or waits, or by a thread. Collective over
// the ranks of `group`. See README.md.
std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, MovedBy moved_by);

inline constexpr const char* kNeedsGpu =
    "transport nccl needs a GPU for every rank; use transport mpi on CPUs";

// nccl: GPU memory, a stream of its own, operations ordered by events. Collective over the ranks of `group`;
// each with a GPU of its own. UsageError: no GPU, more ranks than GPUs on a node. See README.md.
std::unique_ptr<Communicator> make_nccl_communicator(const HostGroup& group, at::Device device);

// In which order the device's own transport serves operations of several communicators
// (strategies/serving.h), on this rank. Nodes may have different drivers: with a group it is the strictest of
// all ranks. Collective.
strategies::Serving serving_of(at::Device device);
strategies::Serving serving_of(at::Device device, const HostGroup& group);

// hierarchical: a transport around another one: all-reduce in stages, first among the ranks of a node, then
// between nodes, then in the node again. All other operations, and communicators split off, are the inner
// transport's own.
//
// Options of transport `hierarchical` (specs/specs.h), resolved. form: `leader` reduces to one rank of each
// node, whose leaders all-reduce and broadcast; `sharded` reduce-scatters in the node, all-reduces every
// rank's part with its peers on the other nodes, and gathers. ranks_per_node: 0 for those that share memory.
//
// On average over ranks both send what a ring does, 2(N-1)/N of the message. Between nodes the sharded form
// sends 2(K-1)/K M/L from each of the L ranks of each of K nodes; the leader form the same from one rank: L
// times as much over its link.
//
// Collective. UsageError: form `sharded` where nodes hold different numbers of ranks.
std::unique_ptr<Communicator> make_hierarchical_communicator(const Options& options,
                                                             std::unique_ptr<Communicator> flat,
                                                             const HostGroup& group);

// The transport of that name, over the ranks of `group`, whose communicator of the device's own transport is
// there already. Collective. UsageError, as make_communicator's.
std::unique_ptr<Communicator> make_around(const std::string& transport, std::unique_ptr<Communicator> flat,
                                          const HostGroup& group);

}  // namespace shardmark
