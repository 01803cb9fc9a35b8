// How long a sweep will still take, from the points that are over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardmark {

// A point counts by the most that its timed steps may take (time_limit_s in plan/plan.h): a point that runs
// for an hour by request tells little about one of two seconds.
class TimeLeft {
 public:
  explicit TimeLeft(double to_do_s) : to_do_s_(to_do_s) {}
  void begin(double point_s) { current_s_ = point_s; }
  // elapsed_s: since the sweep began.
  void end(double elapsed_s) {
    done_s_ += current_s_;
    done_at_s_ = elapsed_s;
    current_s_ = 0;
  }
  // Nothing before the first point is over.
  std::optional<double> left_s(double elapsed_s) const;

 private:
  double to_do_s_, done_s_ = 0;
  double current_s_ = 0;  // of the point that runs
  double done_at_s_ = 0;  // when the latest point ended
};

// "[14/52] 0:41, about 1:10 left"
std::string progress_text(int64_t number, int64_t count, double elapsed_s, std::optional<double> left_s);

}  // namespace shardmark
