// The interface of what a point runs. The sweep knows nothing else about it: it sets up, verifies, samples
// and stores.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_group.h"
#include "comm/watch/heartbeat.h"
#include "schema/record.h"
#include "sweep/round_counts.h"
#include "sweep/verdict.h"

namespace shardmark {

struct Check {
  bool wrong = false;
  std::string text;  // "equal to one device", "unverified: why", or what differs
  double error = Measures::kNone;
  // Unverified because one device does not have enough memory for the reference.
  bool is_too_large = false;
};

// How long the ranks took to start. program_s and mpi_s are those of the slowest rank; launcher_s is that of
// this rank, and NaN where launch did not start it.
struct StartTimes {
  double launcher_s = Measures::kNone, program_s = Measures::kNone, mpi_s = Measures::kNone;
};

// The ranks and cores of a node, and the speed of a device; the same for all points of a study.
struct Resources {
  int local_ranks = 1;  // ranks on this node
  int num_cores = 1;    // cores of this node for all its ranks together
  int threads_per_rank = 1;
  bool is_first_on_node = false;  // this rank is the lowest on its node
  StartTimes start = {};
  // A thread of the transport takes a whole core for every rank, so there is one only if all ranks have a
  // core to spare.
  MovedBy communication() const {
    return num_cores >= local_ranks * (threads_per_rank + 1) ? MovedBy::thread : MovedBy::caller;
  }
  std::map<std::string, double> peak_flops;       // by precision, of one rank, measured
  std::map<std::string, double> datasheet_flops;  // by precision
};

// The result of training on one device (reference.h). The cache holds it under the text of everything that
// determines it, and is filled as points are verified.
struct ReferenceRun {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<double> expert_load;  // tokens in all of these steps: [layer, expert]
  std::string impossible;           // why there is no result; empty if there is
  bool is_too_large = false;        // because one device lacks the memory
};
using ReferenceCache = std::map<std::string, ReferenceRun>;

struct WorkloadContext {
  const Point& point;
  const HostGroup& group;
  Communicator& comm;
  const Resources& resources;
  ReferenceCache& references;
  Heartbeat& heartbeat;    // tells the watchdog what this rank does
  std::string trace = {};  // file for a trace of some steps; empty: none
  // For a collective that runs together with a load: the counts of an earlier repetition.
  RoundCounts round = {};
  double communicators_s = 0;  // seconds that this rank took to make `comm`
};

// All functions but allocate() are called by all ranks in step (comm/in_step.h).
class Workload {
 public:
  virtual ~Workload() = default;
  // Called once, before all others, to take this rank's memory. It makes no collective calls, so a rank may
  // throw alone.
  virtual void allocate() = 0;
  // The error of this rank, if it failed but continued with the sequence of operations that other ranks wait
  // for. Results mean nothing then. nullptr if there was none.
  virtual std::exception_ptr failure() const { return nullptr; }
  virtual Check verify() = 0;  // before the first window
  // Seconds of this rank's first step, which verify() makes; NaN for what has no steps.
  virtual double first_step_s() const { return Measures::kNone; }
  // Clears the marks and sets the first one. Called right after a barrier at which the device was idle:
  // anything slow here, or different between ranks, would become part of the first step.
  virtual void begin_window() = 0;
  virtual void step() = 0;  // enqueues one step or operation; no host sync on a GPU
  // Called after the last step; marks its end if only the begin of a next step would mark it.
  virtual void close_window() {}
  // Returns this rank's durations of the window that was closed: a row for each phase of `phases()`, a column
  // for each step.
  virtual std::vector<std::vector<double>> end_window() = 0;
  virtual std::vector<std::string> phases() const = 0;  // names of kSeries; the first is "step"
  virtual void derive(Record& record) const = 0;        // on rank 0, from record.samples; only arithmetic
  // Fills in what only the ranks know (memory, traffic, losses). Returns what is wrong with it, the same on
  // all ranks; empty if nothing is.
  virtual std::string collect(Record& record) = 0;
  // Measures checkpoints, if the point asks for them. The same verdict on all ranks.
  virtual Verdict measure_checkpoints(Record& record) {
    static_cast<void>(record);
    return {};
  }
  // Measures the ablations, if the workload has any, and stores their series (schema/fields.h). Called
  // last.
  virtual void measure_ablations(Record& record) { static_cast<void>(record); }
};

// Makes the workload that the point names. Collective, and so is its destruction.
std::unique_ptr<Workload> make_workload(const WorkloadContext& context);
std::unique_ptr<Workload> make_training(const WorkloadContext& context);
std::unique_ptr<Workload> make_collective(const WorkloadContext& context);
std::unique_ptr<Workload> make_token_exchange(const WorkloadContext& context);  // dispatch, combine
std::unique_ptr<Workload> make_together(const WorkloadContext& context);        // a collective beside a load

}  // namespace shardmark
