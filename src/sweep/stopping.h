// Decides when a point has warmed up and when it has been measured enough. A fixed number of steps would be
// too few for noisy points and waste time on quiet ones, so sampling goes on until the interval of the median
// is narrow. The 95 % interval comes from order statistics (base/stats.h) and assumes no distribution. Pure:
// rank 0 calls these between windows and broadcasts the result.
#pragma once

#include <cstdint>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// Warm-up goes on while windows still get faster: until the median of a window is no longer 3 % below the
// median of the one before, or there have been 10 windows, or the time limit is over.
class WarmUp {
 public:
  explicit WarmUp(const Sampling& sampling) : sampling_(sampling) {}
  void add(const std::vector<double>& steps_s);  // one window, each step on its slowest rank
  bool done() const;
  int64_t num_steps() const { return num_steps_; }

 private:
  static constexpr int64_t kMaxWindows = 10;
  static constexpr double kStillFaster = 0.97;
  Sampling sampling_;
  std::vector<double> medians_;
  int64_t num_steps_ = 0;
  double elapsed_s_ = 0;
};

inline constexpr double kWindowS = 0.5;  // approximate length of a window

// Sampling stops when the half-width of the median's 95 % interval is at most `precision` of the median, or
// at the limit of steps or time.
class StoppingRule {
 public:
  explicit StoppingRule(const Sampling& sampling) : sampling_(sampling) {}
  void add(const std::vector<double>& steps_s);
  bool done() const;
  int64_t next_window(double typical_step_s) const;  // steps that take about half a second

 private:
  static constexpr int64_t kMinWindow = 5;
  Sampling sampling_;
  std::vector<double> steps_s_;
  double elapsed_s_ = 0;
};

// The intervals of a sustained run, which ends only when its duration is over. Time is divided into at most
// kMost intervals of equal length, none shorter than a window. A window that crosses the end of an interval
// belongs to the interval in which it began.
class Intervals {
 public:
  static constexpr int64_t kMost = 100;
  // Most steps of a window. Its times are kept in memory, and steps may be very short.
  static constexpr int64_t kMostSteps = 1 << 17;
  explicit Intervals(double duration_s);

  int64_t count() const { return count_; }  // at most this many
  // elapsed_s is the time from the first timed step to the end of a window.
  bool ends(double elapsed_s) const { return elapsed_s >= end_s_; }  // the current interval
  bool done(double elapsed_s) const { return elapsed_s >= duration_s_; }
  void begin_next(double elapsed_s);
  // Returns a number of steps that does not go far beyond the end of the interval.
  int64_t next_window(double elapsed_s, double typical_step_s) const;

 private:
  double duration_s_;
  int64_t count_;
  double length_s_;
  double end_s_;  // end of the current interval
};

}  // namespace shardmark
