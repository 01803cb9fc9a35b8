// What one point runs. The sweep knows nothing else: it sets up, verifies, samples and stores.
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

namespace shardmark {

struct Check {
  bool wrong = false;
  std::string text;  // "equal to single", "unverified: why", or what differs
  double error = Measures::kNone;
  bool is_too_large = false;  // unverified, for one device does not have the memory
};

// Where the ranks of a run are, and how fast a device is; the same for all points of a study.
struct Resources {
  int local_ranks = 1;  // on this node
  int num_cores = 1;    // of this node, for its ranks together
  int threads_per_rank = 1;
  // A thread of the transport's own takes a whole core of every rank: only where all of them have one to
  // spare.
  MovedBy communication() const {
    return num_cores >= local_ranks * (threads_per_rank + 1) ? MovedBy::thread : MovedBy::caller;
  }
  std::map<std::string, double> peak_flops;       // by precision, of one rank; measured
  std::map<std::string, double> datasheet_flops;  // by precision
};

// What training on one device gave, by everything that determines it; filled as points are verified
// (reference.h).
struct ReferenceRun {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<double> expert_load;  // of a mixture of experts, in all of these steps: [layer, expert]
  std::string impossible;           // why there is none
  bool is_too_large = false;        // for that reason
};
using ReferenceCache = std::map<std::string, ReferenceRun>;

struct WorkloadContext {
  const Point& point;
  const HostGroup& group;
  Communicator& comm;
  const Resources& resources;
  ReferenceCache& references;
  Heartbeat& heartbeat;    // what this rank does, for the watchdog
  std::string trace = {};  // the file for a trace of some steps; empty: none
  RoundCounts round = {};  // of a collective beside a load, as an earlier repetition had them
};

// What it does is done by all ranks in step (comm/in_step.h), but for allocate().
class Workload {
 public:
  virtual ~Workload() = default;
  virtual void allocate() = 0;  // once, first: this rank's memory. No calls; a rank may throw alone
  // What this rank has failed by while it went on with the sequence of operations that others wait for; what
  // comes out below then means nothing. nullptr: nothing.
  virtual std::exception_ptr failure() const { return nullptr; }
  virtual Check verify() = 0;  // before the first window
  // Clears marks, and makes the first. Right after a barrier, at which the device had nothing to do: what is
  // slow here, or differs between ranks, becomes part of the first step.
  virtual void begin_window() = 0;
  virtual void step() = 0;        // enqueues one step or operation; no host sync on a GPU
  virtual void close_window() {}  // after the last step: marks its end, if the next one's begin does
  // After a window, which has been closed: this rank's durations, one row per phase of `phases()`, one column
  // per step.
  virtual std::vector<std::vector<double>> end_window() = 0;
  virtual std::vector<std::string> phases() const = 0;  // names of kSeries; the first is "step"
  virtual void derive(Record& record) const = 0;        // on rank 0, from record.samples: arithmetic only
  // Fills in what only ranks know (memory, traffic, losses). Returns what is wrong with it, the same on all
  // ranks; empty: nothing.
  virtual std::string collect(Record& record) = 0;
  // The last thing that a workload does. Series of its ablations (schema/fields.h), where it has any.
  virtual void measure_ablations(Record& record) { static_cast<void>(record); }
};

// From a point's workload name. Collective, and so is the end.
std::unique_ptr<Workload> make_workload(const WorkloadContext& context);
std::unique_ptr<Workload> make_training(const WorkloadContext& context);
std::unique_ptr<Workload> make_collective(const WorkloadContext& context);
std::unique_ptr<Workload> make_together(const WorkloadContext& context);  // a collective beside a load

}  // namespace shardmark
