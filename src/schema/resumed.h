// What a launch that goes on with a study finds different from the launches before it.
#pragma once

#include <string>

#include "schema/study.h"

namespace shardmark {

// The study's environment with the suite and command line of the latest launch; facts keep the launches that
// resumed it, each with what it found different. UsageError: points would not be comparable.
Environment resumed(const std::string& path, const Environment& before, const Environment& now,
                    GoesOn goes_on);

// A line where the suite is another, or has another text.
void warn_of_other_suite(const std::string& path, const Environment& before, const Environment& now);

}  // namespace shardmark
