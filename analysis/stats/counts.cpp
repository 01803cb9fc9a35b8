#include "analysis/stats/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/stats/curve.h"

namespace shardmark {
namespace {

constexpr size_t kLeastCounts = 3;
constexpr size_t kLeastDegrees = 2;  // 4 counts of one launch each, for a law with one parameter

using NumLaunches = std::map<double, size_t>;  // by count

NumLaunches launches_of(const std::vector<TimedCount>& times) {
  NumLaunches launches;
  for (const TimedCount& time : times) ++launches[time.units];
  return launches;
}

size_t num_coefficients(const ScalingForm& form) {
  const auto chosen = scaling_curve::coefficients(form);
  return static_cast<size_t>(std::count(chosen.begin(), chosen.end(), true));
}

size_t num_times(const NumLaunches& launches) {
  size_t num = 0;
  for (const auto& [units, count] : launches) num += count;
  return num;
}

bool are_determined(const ScalingForm& form, const NumLaunches& launches) {
  std::vector<least_squares::Row> rows;
  for (const auto& [units, count] : launches) {
    // Terms grow with the count. Divided by it they are of similar size, so that large counts do not hide
    // small ones from the test.
    least_squares::Row row{scaling_curve::terms(form, units), 0};
    for (double& term : row.terms) term /= units;
    rows.push_back(row);
  }
  return least_squares::is_determined(rows, scaling_curve::coefficients(form));
}

bool suffice(const ScalingForm& form, const NumLaunches& launches) {
  const size_t unknown = num_coefficients(form);
  return launches.size() >= std::max(kLeastCounts, unknown) &&
         num_times(launches) >= unknown + kLeastDegrees && are_determined(form, launches);
}

}  // namespace

std::string too_few_counts(const ScalingForm& form, const std::vector<TimedCount>& times) {
  const NumLaunches launches = launches_of(times);
  if (suffice(form, launches)) return "";
  const size_t unknown = num_coefficients(form), several = std::max(kLeastCounts, unknown);
  if (launches.size() >= several && !are_determined(form, launches))
    return fmt::format("{} counts cannot distinguish ranks beyond the node from ranks inside it",
                       launches.size());
  if (launches.size() >= several && num_times(launches) > launches.size())
    return fmt::format("{} counts, {} times in all; a fit needs {} times", launches.size(),
                       num_times(launches), unknown + kLeastDegrees);
  return fmt::format("{} count{}; a fit needs {}, or {} in several launches", launches.size(),
                     launches.size() == 1 ? "" : "s", unknown + kLeastDegrees, several);
}

std::vector<double> further_counts(const ScalingForm& form, const std::vector<TimedCount>& times,
                                   bool tested) {
  const NumLaunches launches = launches_of(times);
  if (launches.empty()) return {};
  size_t most = 0;
  for (const auto& [units, count] : launches) most = std::max(most, count);
  // A further count is assumed to be measured in as many launches as the count that has most. It must not
  // be there already, and for a law of two levels it must fill whole nodes. A fit that is to be tested
  // needs more counts than coefficients, so that a degree of freedom is left for the lack of fit.
  const auto settles = [&](double units) {
    NumLaunches more = launches;
    const bool fills_nodes = form.node == 0 || units <= form.node || std::fmod(units, form.node) == 0;
    if (!fills_nodes || !more.try_emplace(units, most).second) return false;
    return suffice(form, more) && (!tested || more.size() > num_coefficients(form));
  };
  std::vector<double> further;
  const double largest = launches.rbegin()->first;
  if (settles(2 * largest)) further.push_back(2 * largest);
  for (double units = std::exp2(std::floor(std::log2(largest))); units >= 1; units /= 2)
    if (settles(units)) {
      further.push_back(units);
      break;
    }
  return further;
}

}  // namespace shardmark
