// Does a curve describe what was measured several times at each of its places? The scatter between launches
// at one place (pure error) knows nothing of the curve, so it can judge the distances of the places' means
// from it (lack of fit).
#pragma once

#include <vector>

namespace shardmark {

// Where a value was measured, and how far it is off the curve. Its error has a variance of about 1 / weight,
// up to a factor that is common to all.
struct Residual {
  double place;
  double value;
  double weight;
};

struct LackOfFit {
  int degrees = 0;       // places less coefficients
  int pure_degrees = 0;  // values less places
  // Mean squares, in units of 1 / weight; 0 where there are no degrees.
  double lack = 0;
  double pure_error = 0;
  // Probability, where the curve holds, of a lack at least as large beside the pure error, and beside no less
  // than `least` of it; 1 where nothing can be tested.
  double p(double least = 0) const;
};

// Source: Draper and Smith, Applied Regression Analysis, 1998, 2.1; here with weights.
LackOfFit lack_of_fit(const std::vector<Residual>& residuals, int num_coefficients);

// P(F >= f) of Fisher's distribution. Source: Abramowitz and Stegun, 26.6.2 and 26.5.8.
double fisher_p(double f, int degrees, int other_degrees);

}  // namespace shardmark
