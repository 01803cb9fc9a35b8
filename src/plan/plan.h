// The plan: a suite matched with a world. A pure function; impossible points stay, with the reason.
#pragma once

#include <map>
#include <vector>

#include "plan/suite.h"
#include "strategies/step_traffic.h"
#include "strategies/strategy.h"

namespace shardmark {

// What plan knows of the machine. Zero: unknown, nothing is ruled out by it.
struct World {
  int64_t ranks = 1;
  int64_t memory_per_rank_bytes = 0;
  int64_t ranks_per_node = 0;
  std::vector<std::string> precisions = {};                // that the devices compute in; empty: unknown
  bool on_cpu = false;                                     // ranks compute without GPUs; false: unknown, too
  strategies::Serving serving = strategies::Serving::own;  // of the transport; own where it is unknown, too
};

// Every point of the suite for this world; points that cannot run carry the reason in `impossible` (more
// ranks than the world, a precision that the devices only emulate, a global batch that the ranks do not
// divide, a model and a data source that do not match, a program that needs more memory than a rank has).
// Repeats are interleaved. Points of one and the same step are one point (effects.h); notes: what was joined,
// a line each.
std::vector<Point> make_plan(const Suite& suite, const World& world,
                             std::vector<std::string>* notes = nullptr);

// Gives a point of strong scaling, whose batch is that of all ranks, its batch per rank. The reason why not,
// where the ranks do not divide it.
std::string divide_batch(Point& point);

// Why this strategy cannot do with these options, precision or ranks; empty when it can.
std::string strategy_reason(const Point& point);
// Why parameters of this point, whose layout is possible, need no communicator of their own; empty where they
// are gathered.
std::string gathers_reason(const Point& point);

// Why it cannot take the kernels that it names, or be given to a GPU as graphs; empty when it can.
std::string kernels_reason(const Point& point, bool on_cpu);
std::string graph_reason(const Point& point, bool on_cpu);

// Why its state does not fit into the memory of a rank, by the buffers of its program alone: without
// activations, which are an estimate, so that only what certainly does not fit is ruled out. Names a layout
// of the same ranks that would fit, if there is one. Empty when it does, or 0 bytes are given.
std::string memory_reason(const Point& point, int64_t memory_per_rank_bytes);

// The most that the timed steps of a point take; 0 where it cannot run.
double time_limit_s(const Point& point);
// "52 points, at most 84 s of timed steps"
std::string extent_text(const std::vector<Point>& points);

// The order in which a run takes them: shuffled by the suite's seed within each repetition. Indices into the
// plan.
std::vector<size_t> run_order(const Suite& suite, const std::vector<Point>& plan);

// What a point is expected to cost; of a search for the largest batch, its first try: a batch of 1.
struct Expectation {
  strategies::Cost cost;             // per rank; zeros for a collective but for traffic
  strategies::StepTraffic by_phase;  // what of the cost's traffic and operations belongs to which phase
  double activation_bytes = 0;       // estimate
  double flops_per_step = 0;         // per rank
  int64_t num_parameters = 0, num_active_parameters = 0;
  double total_bytes() const { return cost.state_bytes() + activation_bytes; }
};
Expectation expect(const Point& point);

// Of the points of a plan that can run, of each but its repetitions.
using Expectations = std::map<const Point*, Expectation>;
Expectations expect_all(const std::vector<Point>& plan);

}  // namespace shardmark
