// What a step communicates in each of its phases, as columns: of points that were measured and of a plan.
#pragma once

#include "analysis/table/columns.h"
#include "strategies/step_traffic.h"

namespace shardmark {

// Operations and traffic in forward, backward and the update; empty cells where nothing is known.
ColumnsOf<strategies::StepTraffic> phase_traffic_columns();

}  // namespace shardmark
