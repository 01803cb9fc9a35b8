// Measures one point: set up, verify, warm up, sample, collect.
#pragma once

#include "sweep/sustained.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Collective over the point's group; the whole record is on the group's rank 0, the outcome on every rank.
// sink: of a sustained run's intervals.
Record measure_point(const WorkloadContext& context, const ColumnsSink& sink = {});

void add_reason(Record& record, const std::string& reason);

// More computing threads than cores on a node.
bool is_oversubscribed(const Resources& resources, const Point& point);

}  // namespace shardmark
