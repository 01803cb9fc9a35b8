// A sweep whose points ask for different settings (schema/settings.h): the ranks are started once for each
// combination and repetition, one after the other, and all of them write into one study.
#pragma once

#include <functional>
#include <vector>

#include "launch/rounds.h"
#include "plan/starts.h"

namespace shardmark {

// Passes over starts whose points the study holds. A start that ends before it opens the study fails its
// points, with what the library or launcher said; the next one goes on. sweep_of: the sweep of a start.
SweepEnd run_starts(const std::vector<StartOfPoints>& starts,
                    const std::function<Sweep(const StartOfPoints& start)>& sweep_of);

}  // namespace shardmark
