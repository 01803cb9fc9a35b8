// One window: steps between two barriers, timed on every rank.
#pragma once

#include <vector>

#include "device/gauges.h"
#include "sweep/verdict.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// What this rank measured in a window.
struct Window {
  int64_t num_steps = 0;
  std::vector<std::vector<double>> phases;  // [phase][step], seconds; the first row is the step itself
  double energy_j = 0;
  double preemptions = 0;  // per computing thread
  double wall_s = 0;
  Reading reading;  // of a busy device, if it was asked for
};

// Whether the steps add up to the wall time of their window: within 1 %, plus 0.2 ms for what the clock and
// the exit of the barrier may add to a very short window.
bool is_accounted(double timed_s, double wall_s);

class WindowTimer {
 public:
  WindowTimer(const WorkloadContext& context, Workload& workload)
      : group_(context.group),
        workload_(workload),
        heartbeat_(context.heartbeat),
        device_(context.comm.device()),
        gauges_(device_) {}

  // Runs and times a window. Collective; all ranks return the same verdict. If it is not ok, `window` is
  // unchanged.
  Verdict run(int64_t steps, Window& window, bool reads_gauges = false);

 private:
  const HostGroup& group_;
  Workload& workload_;
  Heartbeat& heartbeat_;
  at::Device device_;
  Gauges gauges_;
};

}  // namespace shardmark
