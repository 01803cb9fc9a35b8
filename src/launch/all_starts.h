// A sweep whose points need different settings (schema/settings.h). The ranks are started once for each
// combination and repetition, one start after the other, and all starts write into one study.
#pragma once

#include <functional>
#include <vector>

#include "launch/rounds.h"
#include "plan/starts.h"

namespace shardmark {

// Runs all starts; sweep_of() returns the sweep of one. A start whose points the study already has is
// skipped. If a start ends before its ranks open the study, its points fail with the message of the library
// or launcher, and the next start goes on.
SweepEnd run_starts(const std::vector<StartOfPoints>& starts,
                    const std::function<Sweep(const StartOfPoints& start)>& sweep_of);

}  // namespace shardmark
