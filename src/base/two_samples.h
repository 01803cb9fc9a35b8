// Compares two samples: Mann and Whitney's rank test, exact; Student's t where there are too few values for
// ranks; Holm's correction when many pairs are tested at once.
#pragma once

#include <optional>
#include <vector>

#include "base/stats.h"

namespace shardmark {

// Two-sided p-value: the probability of ranks at least as uneven as these if both samples come from one
// distribution. It is exact, and ties are counted as they are. Source: Mann and Whitney, Ann. Math. Stat.
// 18(1), 1947.
double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b);

// The critical number of pairs for samples without ties. Most pairs (x of a, y of b) have the order of the
// two samples; mann_whitney_p <= level holds exactly if fewer than the returned number of pairs have the
// other order. 0 means that samples of these sizes can never be that uneven.
size_t mann_whitney_pairs(size_t num_a, size_t num_b, double level);

inline constexpr double kIntervalLevel = 0.05;  // chance that an interval misses

// The 95 % confidence interval of the shift from a to b, by inverting the rank test: its ends are differences
// of pairs. Returns nothing if the samples are too small (4 against 4 are enough). Source: Hollander and
// Wolfe, section 4.3.
std::optional<Interval> shift_interval(const std::vector<double>& a, const std::vector<double>& b);

// The pooled standard deviation within the samples. It has num_a + num_b - 2 degrees of freedom, which must
// not be 0.
double pooled_deviation(const std::vector<double>& a, const std::vector<double>& b);

// Student's t distribution with a whole number of degrees of freedom: P(|T| >= t), and its inverse. Source:
// Abramowitz and Stegun, 26.7.3 and 26.7.4.
double student_p(double t, size_t degrees);
double student_t(double p, size_t degrees);

// p-values after Holm's correction, in the order given. Testing all of them at 5 % then finds a difference
// that is not there with a chance of at most 5 %, whatever their dependence. Source: Holm, Scand. J. Statist.
// 6(2), 1979.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace shardmark
