// The plan: the points of a suite, matched with the ranks and devices at hand (the world). Making it is a
// pure function. Points that cannot run stay in the plan, with the reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/suite.h"
#include "specs/specs.h"
#include "strategies/step_traffic.h"
#include "strategies/strategy.h"

namespace shardmark {

// What plan knows about the machine. Zero means unknown: then nothing is ruled out because of it.
struct World {
  int64_t ranks = 1;
  int64_t memory_per_rank_bytes = 0;
  int64_t ranks_per_node = 0;
  // Precisions that the devices support natively; empty: unknown.
  std::vector<std::string> precisions = {};
  // Ranks compute without GPUs. Also false if this is unknown.
  bool on_cpu = false;
  // How the transport serves operations; also `own` if this is unknown.
  strategies::Serving serving = strategies::Serving::own;
  // The transport of points that do not name one; empty: unknown.
  std::string transport = {};
  // What transport mpi can do; also `everything` if this is unknown.
  specs::MpiServes mpi = specs::MpiServes::everything;
};

// Returns every point of the suite for this world. A point that cannot run carries the reason in
// `impossible`: more ranks than the world has, a precision that the devices only emulate, a global batch that
// the ranks do not divide, a model and a data source that do not match, or state that needs more memory than
// a rank has. The plan holds all points of the first repetition, then all points of the second, and so on.
// Points with the same step become one point (effects.h); `notes` gets a line for each kind that was joined.
std::vector<Point> make_plan(const Suite& suite, const World& world,
                             std::vector<std::string>* notes = nullptr);

// Divides the batch of a strong-scaling point, which is that of all ranks, so that the point holds the batch
// per rank and micro-batch. Returns why not if it cannot be divided evenly.
std::string divide_batch(Point& point);

// Returns why the strategy cannot run with these options, precision or ranks; empty if it can.
std::string strategy_reason(const Point& point);
// Returns why this point, whose layout is possible, needs no communicator of its own for gathers: no
// parameters are gathered. Empty if they are.
std::string gathers_reason(const Point& point);

// Returns why these ranks cannot run the collective with this size, type and parts; empty if they can.
std::string collective_reason(const Point& point);

// Returns why the point, over transport mpi, cannot run on these devices or has too many elements for MPI.
// Empty if it can.
std::string mpi_reason(const Point& point, specs::MpiServes serves);

// Return why the point cannot use the kernels that it names, cannot run as CUDA graphs, or has no checkpoints
// to save; empty if it can.
std::string kernels_reason(const Point& point, bool on_cpu);
std::string products_reason(const Point& point);
std::string graph_reason(const Point& point, bool on_cpu);
std::string save_reason(const Point& point);

// Returns why the state of the point does not fit into the memory of a rank, with a layout of the same ranks
// that would fit if there is one. Only the buffers of the program count. Activations are an estimate and are
// left out, so that only what certainly does not fit is ruled out. Empty if the state fits, or if
// memory_per_rank_bytes is 0.
std::string memory_reason(const Point& point, int64_t memory_per_rank_bytes);

// The lowest memory limit of a rank that computes on a GPU. The limit applies to all memory that LibTorch's
// allocator takes, which includes the workspaces of libraries: cuBLAS takes 32 MiB for each stream on Hopper,
// cuDNN takes what its algorithms need, and segments have at least 20 MiB. A lower limit would measure these
// and not the strategy.
inline constexpr int64_t kLeastGpuMemoryBytes = int64_t{1} << 30;

// Returns why a rank on a GPU cannot be limited to this many bytes; empty if it can. 0 means no limit.
std::string gpu_memory_reason(int64_t limit_bytes);

// The longest time that the timed steps of a point can take; 0 if it cannot run.
double time_limit_s(const Point& point);
// "52 points, at most 84 s of timed steps"
std::string extent_text(const std::vector<Point>& points);

// The order in which a run measures the points: shuffled with the suite's seed within each repetition.
// Returns indices into the plan.
std::vector<size_t> run_order(const Suite& suite, const std::vector<Point>& plan);

// The expected cost of a point. For a search for the largest batch, it is that of its first try, a batch of
// 1.
struct Expectation {
  strategies::Cost cost;  // per rank; for a collective only the traffic
  // The traffic and operations of `cost`, divided by phase of the step.
  strategies::StepTraffic by_phase;
  double activation_bytes = 0;  // an estimate
  double flops_per_step = 0;    // per rank
  int64_t num_parameters = 0, num_active_parameters = 0;
  double total_bytes() const { return cost.state_bytes() + activation_bytes; }
};
Expectation expect(const Point& point);

// The expectations of all points of a plan that can run, without their repetitions.
using Expectations = std::map<const Point*, Expectation>;
Expectations expect_all(const std::vector<Point>& plan);

}  // namespace shardmark
