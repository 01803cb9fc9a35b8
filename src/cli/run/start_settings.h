// The settings of a suite (schema/settings.h) on the ranks that are to measure them.
#pragma once

#include <string>
#include <vector>

#include "cli/run_flags.h"
#include "comm/host_group.h"
#include "schema/environment.h"
#include "schema/point.h"

namespace shardmark {

// The points whose settings this process was started with, threads set; all of them where no point has any.
// UsageError where there are none: what to type instead. suite: its path, for that. repetition: which one is
// measured, from 1; 0: all of them.
std::vector<Point> points_of_this_start(const std::vector<Point>& plan, const WorldFlags& flags,
                                        const std::string& suite, int64_t repetition);

// UsageError, on all ranks, where a rank has other settings than rank 0. Collective.
void require_equal_settings(const HostGroup& world, const std::vector<Point>& plan, const WorldFlags& flags);

// What points say by themselves is nothing that the whole study has.
void forget_settings(const std::vector<Point>& plan, Environment& environment);

}  // namespace shardmark
