// What a user sees while a study runs. On a terminal it is one line that is rewritten. Elsewhere it is one
// line for each finished point and, every half minute, how far the sweep is.
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
  log,       // stderr is a file or a pipe
  terminal,  // stderr is a terminal
  // The stderr of `launch` is a terminal. It rewrites its status line with lines that begin with '\r'.
  launch,
};

class Progress {
 public:
  // to_do: points of the plan that are not finished yet. num_before: points that an earlier run has finished.
  Progress(const std::vector<Point>& to_do, int64_t num_before, ProgressOn where);
  ~Progress();
  // `planned` is the point of the plan, `point` the one that runs: a search for the largest batch runs many.
  void begin(const Point& planned, const Point& point);
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
  std::string current_;  // the point that is running
  StatusLine line_;
  std::mutex writing_;
  std::condition_variable_any waiting_;
  std::jthread watcher_;  // last, because it uses all members above
};

// "39,987 tokens/s, 12.8 ms a step" or "4.61 GB/s busbw, 216 us a step"; the reason if the outcome is not ok.
std::string headline(const Record& record);

}  // namespace shardmark
