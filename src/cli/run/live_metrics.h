// run --openmetrics FILE: writes the points so far and the progress of the sweep as metrics
// (analysis/openmetrics.h). The file is replaced atomically while the sweep runs, so a collector never reads
// a partial file.
#pragma once

#include <string>

#include "analysis/openmetrics.h"

namespace shardmark {

class LiveMetrics {
 public:
  // Throws UsageError if the file cannot be written, or exists and holds something other than such metrics.
  static void require_place(const std::string& path);

  // Writes the file, as begin() and the destructor do. If it cannot be written, there is one warning and the
  // sweep goes on. num_points is the number of points of the plan. At most 2 % of the time is spent reading
  // the study: if thousands of points take a moment each, the latest ones appear in the file some seconds
  // later.
  LiveMetrics(std::string path, std::string study, int64_t num_points);
  ~LiveMetrics();  // marks that the sweep has ended
  LiveMetrics(const LiveMetrics&) = delete;
  LiveMetrics& operator=(const LiveMetrics&) = delete;
  void begin(const Point& point);

 private:
  void write();
  void read_points();
  std::string path_, study_;
  SweepProgress progress_;
  int64_t num_points_;
  std::string points_;                 // as metrics, from the last reading of the study
  double read_s_ = 0, reading_s_ = 0;  // time and length of that reading
  bool has_warned_ = false;
};

}  // namespace shardmark
