// What a user sees while a study runs: on a terminal one line that is rewritten, elsewhere one line per
// finished point and, every half minute, how far the sweep is.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "schema/record.h"
#include "sweep/time_left.h"

namespace shardmark {

enum class ProgressOn {
  nothing,   // quiet, or not rank 0
  log,       // a file or a pipe
  terminal,  // our stderr
  launch,    // its stderr is a terminal: it takes lines that begin with '\r' for the one that is rewritten
};

class Progress {
 public:
  // to_do: points of the plan that are not finished yet; num_before: those that an earlier run has finished.
  Progress(const std::vector<Point>& to_do, int64_t num_before, ProgressOn where);
  ~Progress();
  void begin(const Point& planned, const Point& point);  // the search for the largest batch has many points
  void end(const Record& record);
  void count();  // a point of the plan is over

 private:
  void watch(const std::stop_token& stop);
  void show(const std::string& what);  // in the line that is rewritten
  std::string head(int64_t number) const;

  int64_t num_points_, num_before_;
  int64_t num_done_ = 0;
  ProgressOn where_;
  double begin_s_;
  TimeLeft time_left_;
  std::string current_;  // the point that runs
  StatusLine line_;
  std::mutex writing_;
  std::condition_variable_any waiting_;
  std::jthread watcher_;  // last: it uses all of the above
};

// "39,987 tokens/s, 12.8 ms a step" or "4.61 GB/s, 216 us"; the reason where the outcome is not ok.
std::string headline(const Record& record);

}  // namespace shardmark
