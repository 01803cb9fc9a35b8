// What refuses a sweep before anything is measured or written. UsageError: why.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "cli/run_flags.h"
#include "plan/plan.h"

namespace shardmark {

// A missing data file or an unknown precision, on every node that lacks it.
void check_data(const std::vector<Point>& points);

// A transport that these ranks cannot have; points may name one of their own.
void check_transports(const std::vector<Point>& points, const std::string& transport, at::Device device);

// Flags of which no point of the plan takes notice.
void refuse_unused(const RunFlags& run, const Suite& suite, const std::vector<Point>& plan);

}  // namespace shardmark
