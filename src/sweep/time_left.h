// The remaining time of a sweep, estimated from the points that are over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardmark {

// Points are weighted by the longest time that their timed steps may take (time_limit_s in plan/plan.h). A
// point that runs for an hour on request says little about how long one of two seconds takes.
class TimeLeft {
 public:
  explicit TimeLeft(double to_do_s) : to_do_s_(to_do_s) {}
  void begin(double point_s) { current_s_ = point_s; }
  // elapsed_s is the time since the sweep began.
  void end(double elapsed_s) {
    done_s_ += current_s_;
    done_at_s_ = elapsed_s;
    current_s_ = 0;
  }
  // Returns nothing until the first point is over.
  std::optional<double> left_s(double elapsed_s) const;

 private:
  double to_do_s_, done_s_ = 0;
  double current_s_ = 0;  // limit of the point that is running
  double done_at_s_ = 0;  // when the last point ended
};

// "[14/52] 0:41, about 1:10 left"
std::string progress_text(int64_t number, int64_t count, double elapsed_s, std::optional<double> left_s);

}  // namespace shardmark
