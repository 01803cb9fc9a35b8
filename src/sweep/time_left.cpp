// Estimates the remaining time of a sweep from the time limits of its points. The points that are over give
// the ratio of real time to the sum of their limits, and the limits of the remaining points are scaled by it.
// The estimate falls while a point runs, but not below the share of the points after it.
#include "sweep/time_left.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace shardmark {

std::optional<double> TimeLeft::left_s(double elapsed_s) const {
  if (done_s_ <= 0) return {};
  const double real = done_at_s_ / done_s_;  // real seconds per second of limits
  const double left = real * std::max(to_do_s_ - done_s_, 0.0);
  const double after_this_point = real * std::max(to_do_s_ - done_s_ - current_s_, 0.0);
  return std::max(left - (elapsed_s - done_at_s_), after_this_point);
}

std::string progress_text(int64_t number, int64_t count, double elapsed_s, std::optional<double> left_s) {
  return fmt::format("[{}/{}] {}{}", number, count, format_clock(elapsed_s),
                     left_s ? ", about " + format_clock(*left_s) + " left" : "");
}

}  // namespace shardmark
