// When a point has been measured enough. Pure: rank 0 calls it between windows and broadcasts the answer.
#pragma once

#include <cstdint>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// Warm-up goes on while windows still get faster: each window's median against the one before.
class WarmUp {
 public:
  explicit WarmUp(const Sampling& sampling) : sampling_(sampling) {}
  void add(const std::vector<double>& steps_s);  // worst of ranks, one window
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

inline constexpr double kWindowS = 0.5;  // about as long as a window should be

// Sampling stops when the 95 % interval of the median is narrow enough, or at a limit of steps or time.
class StoppingRule {
 public:
  explicit StoppingRule(const Sampling& sampling) : sampling_(sampling) {}
  void add(const std::vector<double>& steps_s);
  bool done() const;
  int64_t next_window(double typical_step_s) const;  // steps: about half a second of them

 private:
  static constexpr int64_t kMinWindow = 5;
  Sampling sampling_;
  std::vector<double> steps_s_;
  double elapsed_s_ = 0;
};

// A sustained run: nothing but its duration ends it. Time is cut into at most kMost intervals of equal
// length, none shorter than a window; a window that crosses an end belongs to the interval that it began in.
class Intervals {
 public:
  static constexpr int64_t kMost = 100;
  static constexpr int64_t kMostSteps =
      1 << 17;  // of a window: its times are in memory, however short a step is
  explicit Intervals(double duration_s);

  int64_t count() const { return count_; }  // the most that there will be
  // elapsed_s: since the timed steps began, at the end of a window.
  bool ends(double elapsed_s) const { return elapsed_s >= end_s_; }  // the running interval
  bool done(double elapsed_s) const { return elapsed_s >= duration_s_; }
  void begin_next(double elapsed_s);
  int64_t next_window(double elapsed_s, double typical_step_s) const;  // steps, not beyond the interval

 private:
  double duration_s_;
  int64_t count_;
  double length_s_;
  double end_s_;  // of the running interval
};

}  // namespace shardmark
