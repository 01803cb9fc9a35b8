// Where and with what a study is made: gathered once from all ranks.
#pragma once

#include <ATen/ATen.h>

#include "base/node.h"
#include "comm/host_group.h"
#include "doctor/machine/facts.h"
#include "schema/environment.h"
#include "schema/record.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Collective; the result is on rank 0. Command line, suite and transport are the caller's to fill in.
Environment describe_environment(const HostGroup& world, at::Device device, const Resources& resources);

// Cores, ranks and threads of this node, and the measured peak of one rank in these precisions (all ranks
// measure at once, as they will compute at once; the median rank counts). Collective.
Resources describe_resources(const HostGroup& world, int local_ranks, at::Device device,
                             const std::vector<std::string>& precisions);

}  // namespace shardmark
