// Least squares in one unknown, and its interval.
#include "analysis/amdahl.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/scaling.h"

namespace shardmark {
namespace {

struct SpeedUp {
  int64_t ranks;
  double value;
};

std::vector<SpeedUp> speedups(const std::vector<StepTime>& times, double base_s) {
  std::vector<SpeedUp> all;
  for (const StepTime& time : times)
    if (time.ranks > 1) all.push_back({time.ranks, base_s / time.step_s});
  return all;
}

double squares(const std::vector<SpeedUp>& measured, double s) {
  double sum = 0;
  for (const auto& [ranks, value] : measured) {
    const double residual = value - amdahl_speedup(s, static_cast<double>(ranks));
    sum += residual * residual;
  }
  return sum;
}

// Every point's own fraction explains it exactly and S falls as s grows, so the best s lies between the
// smallest and the largest of them: a scan finds the valley, thirds its floor.
double best_fraction(const std::vector<SpeedUp>& measured) {
  double low = 1, high = 0;
  for (const auto& [ranks, value] : measured) {
    const double own = std::clamp(karp_flatt(value, ranks), 0.0, 1.0);
    low = std::min(low, own);
    high = std::max(high, own);
  }
  constexpr int kScan = 64;
  const double cell = (high - low) / kScan;
  int best = 0;
  for (int i = 1; i <= kScan; ++i)
    if (squares(measured, low + i * cell) < squares(measured, low + best * cell)) best = i;
  double left = std::max(low, low + (best - 1) * cell), right = std::min(high, low + (best + 1) * cell);
  for (int i = 0; i < 100 && right - left > 1e-12; ++i) {
    const double a = left + (right - left) / 3, b = right - (right - left) / 3;
    (squares(measured, a) < squares(measured, b) ? right : left) =
        squares(measured, a) < squares(measured, b) ? b : a;
  }
  return (left + right) / 2;
}

// 97.5 % point of Student's t; from 10 degrees of freedom on, the value for 10 (a little too wide).
double student_t(size_t degrees) {
  constexpr std::array kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return kT[std::min(degrees, kT.size()) - 1];
}

// Half-width from the residuals of the fit: t sqrt(SSE / (m-1) / sum (dS/ds)^2), m speed-ups, one unknown.
double half_width(const std::vector<SpeedUp>& measured, double s) {
  double slopes = 0;
  for (const auto& [ranks, value] : measured) {
    const double model = amdahl_speedup(s, static_cast<double>(ranks));
    const double slope = model * model * (1 - 1 / static_cast<double>(ranks));
    slopes += slope * slope;
  }
  const size_t degrees = measured.size() - 1;
  return student_t(degrees) * std::sqrt(squares(measured, s) / static_cast<double>(degrees) / slopes);
}

}  // namespace

double amdahl_speedup(double serial_fraction, double ranks) {
  return 1 / (serial_fraction + (1 - serial_fraction) / ranks);
}

std::optional<SerialFraction> serial_fraction(const std::vector<StepTime>& times) {
  if (times.size() < 2 || times.front().ranks != 1) return std::nullopt;
  const StepTime& base = times.front();
  const std::vector<SpeedUp> measured = speedups(times, base.step_s);
  if (times.size() < kLeastFittedRankCounts) {
    const SpeedUp& most = measured.back();
    return SerialFraction{karp_flatt(most.value, most.ranks), false};
  }
  SerialFraction fit{best_fraction(measured), true};
  // All speed-ups share T(1), so its error does not show in the residuals: the fits at both ends of its
  // interval do.
  double shared = 0;
  if (std::isfinite(base.low_s) && std::isfinite(base.high_s))
    shared =
        std::abs(best_fraction(speedups(times, base.high_s)) - best_fraction(speedups(times, base.low_s))) /
        2;
  const double half = std::hypot(half_width(measured, fit.value), shared);
  fit.low = std::max(0.0, fit.value - half);
  fit.high = std::min(1.0, fit.value + half);
  return fit;
}

}  // namespace shardmark
