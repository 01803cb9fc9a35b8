// Steps until a point is warm, then until it has been measured enough.
#pragma once

#include <vector>

#include "sweep/gathered.h"
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

  // Fills the record's series on rank 0. Collective, the verdict too.
  Verdict run(Record& record);

 private:
  Verdict warm_up(Record& record);
  Verdict sample(Record& record);
  Verdict run_window(int64_t steps);
  std::vector<double> worst_steps() const;
  void keep(Record& record) const;

  const Sampling& sampling_;
  const HostGroup& group_;
  Workload& workload_;
  const ColumnsSink& sink_;
  WindowTimer timer_;
  Window own_;
  // The window as rank 0 sees it: [rank] -> phases one after the other, each with num_steps values; then the
  // energy and the wall time.
  std::vector<std::vector<double>> ranks_;
  double typical_step_s_ = 0;  // on rank 0; 0: not known yet
};

}  // namespace shardmark
