// A transport around another one: all-reduce in stages, first among the ranks of a node, then between nodes,
// then in the node again. All other operations, and communicators split off, are the inner transport's own.
#pragma once

#include "comm/communicator.h"
#include "schema/choice.h"

namespace shardmark {

// options of laws' transport `hierarchical`, resolved. form: `leader` reduces to one rank of each node, whose
// leaders all-reduce and broadcast; `sharded` reduce-scatters in the node, all-reduces every rank's part with
// its peers on the other nodes, and gathers. ranks_per_node: 0 for those that share memory.
//
// On average over ranks both send what a ring does, 2(N-1)/N of the message. Between nodes the sharded form
// sends 2(K-1)/K M/L from each of the L ranks of each of K nodes; the leader form the same from one rank: L
// times as much over its link.
//
// Collective. UsageError: form `sharded` where nodes hold different numbers of ranks.
std::unique_ptr<Communicator> make_hierarchical_communicator(const Options& options, const HostGroup& group,
                                                             at::Device device, MovedBy moved_by);

}  // namespace shardmark
