// Checks that refuse a sweep before anything is measured or written. All throw a UsageError with the reason.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "cli/run_flags.h"
#include "plan/plan.h"

namespace shardmark {

// Refuses a missing data file or an unknown precision, on every node where it is missing.
void check_data(const std::vector<Point>& points);

// Refuses a transport that these ranks cannot use. Points may name their own.
void check_transports(const std::vector<Point>& points, const std::string& transport, at::Device device);

// Refuses flags that no point of the plan uses.
void refuse_unused(const RunFlags& run, const Suite& suite, const std::vector<Point>& plan);

}  // namespace shardmark
