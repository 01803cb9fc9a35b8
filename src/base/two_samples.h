// Two samples compared: Mann and Whitney's rank test, exact; Student's t where values are too few for ranks;
// Holm's correction when many pairs are tested at once.
#pragma once

#include <optional>
#include <vector>

#include "base/stats.h"

namespace shardmark {

// Probability, under "both come from one distribution", of ranks at least as uneven as these; two-sided.
// Exact, with ties counted as they are. Source: Mann and Whitney, Ann. Math. Stat. 18(1), 1947.
double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b);

// The k of samples without ties of which mann_whitney_p <= level says: fewer than k of all pairs (x of a, y
// of b) lie in the other order than most. 0: samples of these sizes can never be that uneven.
size_t mann_whitney_pairs(size_t num_a, size_t num_b, double level);

inline constexpr double kIntervalLevel = 0.05;  // intervals leave this out

// 95 % interval of the shift from a to b: the test inverted; ends are differences of pairs. Nothing where the
// samples are too small for one (4 against 4 are enough). Source: Hollander and Wolfe, section 4.3.
std::optional<Interval> shift_interval(const std::vector<double>& a, const std::vector<double>& b);

// Standard deviation within the samples, pooled; num_a + num_b - 2 degrees of freedom, which must not be 0.
double pooled_deviation(const std::vector<double>& a, const std::vector<double>& b);

// Student's t with whole degrees of freedom: P(|T| >= t), and the t of which that is `p`. Source: Abramowitz
// and Stegun, 26.7.3 and 26.7.4.
double student_p(double t, size_t degrees);
double student_t(double p, size_t degrees);

// p-values after Holm's correction, in the order given: the chance that any of them is at most 5 % by
// accident is at most 5 %, whatever their dependence. Source: Holm, Scand. J. Statist. 6(2), 1979.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace shardmark
