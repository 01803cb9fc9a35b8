#include "analysis/stats/failures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"

namespace shardmark {
namespace {

constexpr Real kFailuresPerHour{0, 1e3, /*is_open=*/true};

std::string names_of_rates() {
  std::string names;
  for (const PublishedFailures& one : kPublishedFailures) names += std::string(one.name) + ", ";
  return names;
}

}  // namespace

double young_interval_s(const Interruptions& job) { return std::sqrt(2 * job.write_s * job.between_s); }

// Daly's interval is a series in write / (2 between), which holds below 1. From 1 on, where a checkpoint
// takes twice the time between failures, he takes the time between failures itself.
double daly_interval_s(const Interruptions& job) {
  const double ratio = job.write_s / (2 * job.between_s);
  if (ratio >= 1) return job.between_s;
  return young_interval_s(job) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - job.write_s;
}

double goodput(const Interruptions& job, double interval_s) {
  const double m = job.between_s;
  return interval_s /
         (std::exp(job.read_s / m) * (m + job.restart_s) * std::expm1((interval_s + job.write_s) / m));
}

const PublishedFailures* published_failures(double per_node_hour) {
  const auto* const found =
      std::find_if(kPublishedFailures.begin(), kPublishedFailures.end(),
                   [&](const PublishedFailures& one) { return one.per_node_hour == per_node_hour; });
  return found == kPublishedFailures.end() ? nullptr : found;
}

std::string FailureRate::range() { return names_of_rates() + "or a number " + kFailuresPerHour.range(); }

double FailureRate::parse(const std::string& text) {
  for (const PublishedFailures& one : kPublishedFailures)
    if (text == one.name) return one.per_node_hour;
  try {
    return kFailuresPerHour.parse(text);
  } catch (const UsageError&) {
    throw UsageError("expected " + names_of_rates() + "or " + kFailuresPerHour.expected() + ", got " +
                     quoted_line(text));
  }
}

}  // namespace shardmark
