// run --openmetrics FILE: the points so far and the sweep's progress as metrics (analysis/openmetrics.h), in
// a file that is replaced whole while the sweep runs: what a collector reads is never half a file.
#pragma once

#include <string>

#include "analysis/openmetrics.h"

namespace shardmark {

class LiveMetrics {
 public:
  // May the file be written? UsageError: it may not, or it is there and holds something else than such
  // metrics.
  static void require_place(const std::string& path);

  // num_points: of the plan. Writes the file, as all of the following do; one that cannot be written costs a
  // warning, once, and never the sweep. At most 2 % of the time goes into reading the study: where thousands
  // of points take a moment each, the latest ones come some seconds later into the file.
  LiveMetrics(std::string path, std::string study, int64_t num_points);
  ~LiveMetrics();  // the sweep has ended, well or not
  LiveMetrics(const LiveMetrics&) = delete;
  LiveMetrics& operator=(const LiveMetrics&) = delete;
  void begin(const Point& point);

 private:
  void write();
  void read_points();
  std::string path_, study_;
  SweepProgress progress_;
  int64_t num_points_;
  std::string points_;                 // as metrics, by the latest reading of the study
  double read_s_ = 0, reading_s_ = 0;  // when that was, and how long it took
  bool has_warned_ = false;
};

}  // namespace shardmark
