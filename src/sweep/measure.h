// Measures one point: set up, verify, warm up, sample, collect.
#pragma once

#include "sweep/sustained.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Collective over the point's group. The complete record is on the group's rank 0, the outcome on every rank.
// `sink` receives the intervals of a sustained run.
Record measure_point(const WorkloadContext& context, const ColumnsSink& sink = {});

void add_reason(Record& record, const std::string& reason);

// Whether a node has more computing threads than cores.
bool is_oversubscribed(const Resources& resources, const Point& point);

}  // namespace shardmark
