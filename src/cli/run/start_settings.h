// Settings of a suite (schema/settings.h) on the ranks that measure them.
#pragma once

#include <string>
#include <vector>

#include "cli/run_flags.h"
#include "comm/host_group.h"
#include "schema/environment.h"
#include "schema/point.h"

namespace shardmark {

// Returns the points whose settings this process was started with; all points if none has settings. The
// number of threads must have been set. Throws a UsageError that says what to type if there are no such
// points; `suite` is the path for that message. `repetition` is the one to measure, from 1; 0: all.
std::vector<Point> points_of_this_start(const std::vector<Point>& plan, const WorldFlags& flags,
                                        const std::string& suite, int64_t repetition);

// Throws UsageError on all ranks if a rank has other settings than rank 0. Collective.
void require_equal_settings(const HostGroup& world, const std::vector<Point>& plan, const WorldFlags& flags);

// Removes from the environment what points record themselves: it is not the same for the whole study.
void forget_settings(const std::vector<Point>& plan, Environment& environment);

}  // namespace shardmark
