// What the operations and blocks of a point's programs take.
#pragma once

#include <array>
#include <vector>

#include "analysis/predict/collective_costs.h"
#include "analysis/predict/compute_costs.h"
#include "strategies/stages.h"

namespace shardmark {

using strategies::Stages;

// whole: of the blocks of the model, as a rank of the point has them. Without operations.
std::vector<strategies::SimulatedRank> simulated(const Stages& stages, const ComputeTimes& whole);
// All of them times `stretch`. Whether the time of all is known.
bool set_operations(std::vector<strategies::SimulatedRank>& simulated, const Stages& stages,
                    const CollectiveCosts& costs, int64_t ranks_per_node, double stretch);

// Where the ranks of an operation lie, when a node holds ranks_per_node of all ranks.
specs::Span span_of(const strategies::CollectiveCall& operation, int64_t ranks_per_node);
// The time of each operation of a program, or a NaN where nothing like it was measured.
std::vector<double> operation_times(const strategies::Program& program, const CollectiveCosts& costs,
                                    int64_t ranks_per_node);
// How many operations across nodes a rank starts in a step, by what they are for; mean over the stages.
using OperationCounts = std::array<double, specs::kNumDimensions>;
OperationCounts operations_across(const Stages& stages, int64_t ranks_per_node);
bool all_known(const std::vector<double>& seconds);

}  // namespace shardmark
