// What a user sees while a study runs: on a terminal one line that is rewritten, elsewhere one line per
// finished point.
#pragma once

#include <cstdint>
#include <string>

#include "schema/record.h"

namespace shardmark {

class Progress {
 public:
  // num_before: points of the plan that an earlier run has finished.
  Progress(int64_t num_points, int64_t num_before, bool quiet);
  ~Progress();
  void begin(const Point& point);
  void end(const Record& record);
  void count();  // a point of the plan is over; a search for the largest batch ends several records

 private:
  std::string time_left() const;
  int64_t num_points_, num_before_;
  int64_t num_done_ = 0;
  bool quiet_;
  bool terminal_;
  double begin_s_;
};

// "39,987 tokens/s, 12.8 ms a step" or "4.61 GB/s, 216 us"; the reason where the outcome is not ok.
std::string headline(const Record& record);

}  // namespace shardmark
