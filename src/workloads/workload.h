// What one point runs. The runner knows nothing else: it sets up, verifies, samples and stores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_group.h"
#include "schema/record.h"

namespace shardmark {

struct Check {
  bool wrong = false;
  std::string text;       // "equal to single", "unverified: why", or what differs
  double error = Measures::kNone;
};

struct WorkloadContext {
  const Point& point;
  const HostGroup& group;
  Communicator& comm;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual Check verify() = 0;             // collective; leaves the workload as it was
  virtual void begin_window() = 0;        // clears marks; the runner holds a barrier after it
  virtual void step() = 0;                // enqueues one step or operation; no host sync on a GPU
  // After a window: this rank's durations, one row per phase of `phases()`, one column per step.
  virtual std::vector<std::vector<double>> end_window() = 0;
  virtual std::vector<std::string> phases() const = 0;  // names of kSeries; the first is "step"
  virtual void derive(Record& record) const = 0;        // on rank 0, from record.samples: arithmetic only
  virtual void collect(Record& record) = 0;             // collective: what only ranks know (memory, traffic, losses)
};

// From a point's workload name; throws what set-up throws. Collective.
std::unique_ptr<Workload> make_workload(const WorkloadContext& context);
std::unique_ptr<Workload> make_training(const WorkloadContext& context);
std::unique_ptr<Workload> make_collective(const WorkloadContext& context);

}  // namespace shardmark
