// Implements the rules for warm-up, sampling and the intervals of a sustained run.
#include "sweep/stopping.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stats.h"

namespace shardmark {

void WarmUp::add(const std::vector<double>& steps_s) {
  medians_.push_back(median(steps_s));
  num_steps_ += static_cast<int64_t>(steps_s.size());
  elapsed_s_ = std::accumulate(steps_s.begin(), steps_s.end(), elapsed_s_);
}

bool WarmUp::done() const {
  if (num_steps_ < sampling_.warmup_steps) return false;
  if (sampling_.warmup_steps == 0 || elapsed_s_ > sampling_.time_limit_s) return true;
  const auto windows = static_cast<int64_t>(medians_.size());
  if (windows >= kMaxWindows) return true;
  return windows >= 2 && medians_.back() > kStillFaster * medians_[medians_.size() - 2];
}

void StoppingRule::add(const std::vector<double>& steps_s) {
  steps_s_.insert(steps_s_.end(), steps_s.begin(), steps_s.end());
  elapsed_s_ = std::accumulate(steps_s.begin(), steps_s.end(), elapsed_s_);
}

bool StoppingRule::done() const {
  const auto taken = static_cast<int64_t>(steps_s_.size());
  if (taken >= sampling_.max_steps || elapsed_s_ >= sampling_.time_limit_s) return true;
  if (taken < std::max<int64_t>(sampling_.min_steps, 1)) return false;
  const Interval interval = median_interval(steps_s_);
  return (interval.high - interval.low) / 2 <= sampling_.precision * median(steps_s_);
}

// As many steps as fit into kWindowS and the time that is left, at least kMinWindow, and not more than
// max_steps allows.
int64_t StoppingRule::next_window(double typical_step_s) const {
  const int64_t left = sampling_.max_steps - static_cast<int64_t>(steps_s_.size());
  const double in_time =
      std::min(kWindowS, sampling_.time_limit_s - elapsed_s_) / std::max(typical_step_s, 1e-9);
  const int64_t wanted = std::max(static_cast<int64_t>(std::min(in_time, 1e9)), kMinWindow);
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(left, 1));
}

Intervals::Intervals(double duration_s)
    : duration_s_(duration_s),
      count_(static_cast<int64_t>(std::clamp(duration_s / kWindowS, 1.0, static_cast<double>(kMost)))),
      length_s_(duration_s / static_cast<double>(count_)),
      end_s_(length_s_) {}

void Intervals::begin_next(double elapsed_s) {
  end_s_ = (std::floor(elapsed_s / length_s_) + 1) * length_s_;
  if (end_s_ > duration_s_ - length_s_ / 2) end_s_ = duration_s_;  // the last interval, despite rounding
}

int64_t Intervals::next_window(double elapsed_s, double typical_step_s) const {
  const double steps = std::min(kWindowS, end_s_ - elapsed_s) / std::max(typical_step_s, 1e-9);
  return std::max<int64_t>(static_cast<int64_t>(std::ceil(std::min<double>(steps, kMostSteps))), 1);
}

}  // namespace shardmark
