#include "sweep/window.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "base/node.h"
#include "device/device.h"
#include "device/timeline.h"

namespace shardmark {

bool is_accounted(double timed_s, double wall_s) {
  return std::abs(wall_s - timed_s) <= 0.01 * wall_s + 2e-4;
}

Verdict WindowTimer::run(int64_t steps, Window& window, bool reads_gauges) {
  Window seen;
  seen.num_steps = steps;
  synchronize(device_);  // finishes earlier work on all queues
  const double energy_before_j = gauges_.energy_j();
  heartbeat_.meet("a window's begin");
  group_.barrier();
  const int64_t switches_before = involuntary_switches();
  const double begin = now_s();
  workload_.begin_window();  // the first mark; later steps do not include a late start
  Verdict verdict = agreed_in_step(
      group_, heartbeat_, "steps",
      [&] {
        for (int64_t i = 0; i < steps; ++i) {
          // Read before the last step, while a GPU still has work: an idle GPU reports another clock.
          if (reads_gauges && i + 1 == steps) seen.reading = gauges_.read();
          workload_.step();
        }
        heartbeat_.stage("steps, waiting for the device");
        workload_.close_window();
        synchronize(device_);
        seen.wall_s = now_s() - begin;  // before the marks are read, which calls the driver
        seen.preemptions =
            static_cast<double>(involuntary_switches() - switches_before) / at::get_num_threads();
        seen.energy_j = gauges_.energy_j() - energy_before_j;
        seen.phases = workload_.end_window();
      },
      [&] { return workload_.failure(); });
  if (verdict.ok()) window = std::move(seen);
  return verdict;
}

}  // namespace shardmark
