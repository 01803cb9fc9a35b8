// Describes where and with what a study is made; gathered once from all ranks.
#pragma once

#include <ATen/ATen.h>

#include "base/node.h"
#include "comm/host_group.h"
#include "doctor/machine/facts.h"
#include "schema/environment.h"
#include "schema/record.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Collective; the result is on rank 0. The caller fills in the command line, the suite and the transport.
Environment describe_environment(const HostGroup& world, at::Device device, const Resources& resources);

// Returns the cores, ranks and threads of this node, how long the ranks took to start, and the peak FLOP/s of
// one rank in these precisions. All
// ranks measure the peak at the same time, as they will compute at the same time, and the median over ranks
// is taken. Collective.
Resources describe_resources(const HostGroup& world, const MpiSession& session, at::Device device,
                             const std::vector<std::string>& precisions);

}  // namespace shardmark
