// Measured points as metrics for Prometheus: text by the OpenMetrics specification 1.0, which the node
// exporter's textfile collector reads, too (https://prometheus.io/docs/specs/om/open_metrics_spec/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

// How far a running sweep is. Times are seconds since 1970, UTC.
struct SweepProgress {
  std::string study;  // its name
  bool is_running = true;
  int64_t num_done = 0, num_to_go = 0;  // points of the plan
  int64_t num_failed = 0;               // of those that are done, and of a search's tries
  std::string point = {};               // that is being measured; empty: none
  double point_began_s = 0;
  double began_s = 0, changed_s = 0;  // this launch of the sweep, these figures
};

// The parts of an exposition, which ends with kEndOfMetrics: gauges in seconds, bytes and ratios, a series
// for each point that was measured, and the number of points by outcome. What a point has no value of is left
// out.
std::string point_metrics(const std::vector<StudyData>& studies);
std::string progress_metrics(const SweepProgress& sweep);
inline constexpr const char* kEndOfMetrics = "# EOF\n";

}  // namespace shardmark
