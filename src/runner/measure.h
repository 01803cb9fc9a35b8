// Measures one point: set up, verify, warm up, sample, collect.
#pragma once

#include "workloads/workload.h"

namespace shardmark {

// Collective over the point's group; the whole record is on the group's rank 0, the outcome on every rank.
Record measure_point(const WorkloadContext& context);

}  // namespace shardmark
