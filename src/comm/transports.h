// The transports. make_communicator (communicator.h) makes them by name.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "schema/choice.h"
#include "specs/specs.h"
#include "strategies/pipeline.h"

namespace shardmark {

// pt2pt: shardmark's own collectives, made of MPI's point-to-point messages between host memory. Operations
// progress when this rank polls or waits, or by a thread of their own. Collective over the ranks of `group`.
// README.md describes the algorithms.
std::unique_ptr<Communicator> make_pt2pt_communicator(const HostGroup& group, MovedBy moved_by);

// mpi: the collectives of the MPI library. On GPUs its blocking ones only, where the library takes GPU
// memory; it is asked at run time. Nothing of it has run on a GPU yet. Collective over the ranks of `group`.
std::unique_ptr<Communicator> make_mpi_communicator(const HostGroup& group, at::Device device);

// What transport mpi can do with the memory of this device: the strictest of all ranks. Collective.
specs::MpiServes mpi_serves(at::Device device, const HostGroup& group);

inline constexpr const char* kNeedsGpu =
    "transport nccl needs a GPU for every rank; use transport pt2pt or mpi on CPUs";
inline constexpr const char* kNeedsHost =
    "transport pt2pt moves host memory; use transport nccl or mpi on GPUs, or --device cpu";

// The device's own transport, which is the default and which `hierarchical` is built of.
inline const char* default_transport(at::Device device) { return device.is_cuda() ? "nccl" : "pt2pt"; }

// nccl: moves GPU memory on a stream of its own; events order its operations. Collective over the ranks of
// `group`, each of which needs its own GPU. Throws UsageError if there is no GPU, or if a node has more ranks
// than GPUs. README.md has more.
std::unique_ptr<Communicator> make_nccl_communicator(const HostGroup& group, at::Device device);

// The order in which the device's own transport runs operations of several communicators
// (strategies/serving.h), on this rank. Nodes may have different drivers; with a group, which makes it
// collective, the result is the strictest of all ranks.
strategies::Serving serving_of(at::Device device);
strategies::Serving serving_of(at::Device device, const HostGroup& group);

// hierarchical: wraps another transport and runs all-reduce in three stages: among the ranks of a node,
// between nodes, and in the node again. All other operations, and communicators that are split off, are those
// of the inner transport.
//
// The options are those of transport `hierarchical` (specs/specs.h), resolved. form: `leader` reduces to one
// rank of each node; these leaders all-reduce and then broadcast in their nodes. `sharded` reduce-scatters in
// the node, all-reduces every rank's shard with its peers on the other nodes, and all-gathers.
// ranks_per_node: 0 takes the ranks that share memory as a node.
//
// On average over ranks both send what a ring does, 2(N-1)/N of the message M. Between K nodes of L ranks the
// sharded form sends 2(K-1)/K M/L from each rank. The leader form sends L times as much over one link:
// 2(K-1)/K M from each leader.
//
// Collective. Throws UsageError if form `sharded` meets nodes with different numbers of ranks.
std::unique_ptr<Communicator> make_hierarchical_communicator(const Options& options,
                                                             std::unique_ptr<Communicator> flat,
                                                             const HostGroup& group);

// The transport of that name over the ranks of `group`, built around `flat`, a communicator of the device's
// own transport. Collective. Throws the errors of make_communicator.
std::unique_ptr<Communicator> make_around(const std::string& transport, std::unique_ptr<Communicator> flat,
                                          const HostGroup& group);

// A communicator for a process group of one rank. It has no transport: the output is a copy of the input,
// made in the order of the rank's own work. A layout has such groups where one of its dimensions is 1; a real
// transport would create a communicator and a stream for each, and launch operations on them. The
// communicator is on the device of `all`, which this rank belongs to. Its operations are complete as soon as
// they have started.
std::unique_ptr<Communicator> make_alone(const Communicator& all);

}  // namespace shardmark
