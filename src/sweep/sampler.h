// Runs steps until a point has warmed up, then until it has been measured enough.
#pragma once

#include <vector>

#include "sweep/sustained.h"
#include "sweep/window.h"

namespace shardmark {

class Sampler {
 public:
  Sampler(const WorkloadContext& context, Workload& workload, const ColumnsSink& sink)
      : sampling_(context.point.sampling),
        group_(context.group),
        workload_(workload),
        sink_(sink),
        timer_(context, workload) {}

  // Fills the record's series on rank 0. Collective; all ranks return the same verdict.
  Verdict run(Record& record);

 private:
  Verdict warm_up(Record& record);
  Verdict sample(Record& record);
  Verdict run_window(int64_t steps);
  void keep();
  void gather(Record& record) const;

  const Sampling& sampling_;
  const HostGroup& group_;
  Workload& workload_;
  const ColumnsSink& sink_;
  WindowTimer timer_;
  Window own_;                 // the last window on this rank
  std::vector<double> worst_;  // its steps, each on its slowest rank
  double typical_step_s_ = 0;  // on rank 0; 0: not yet known
  // This rank's values of all timed windows. Rank 0 gathers them once, at the end.
  std::vector<std::vector<double>> phases_;              // [phase][step]
  std::vector<double> energy_j_, wall_s_, preemptions_;  // [window]
  bool unaccounted_ = false;
};

}  // namespace shardmark
