// What has changed between the earlier launches of a study and the launch that resumes it.
#pragma once

#include <string>

#include "schema/study.h"

namespace shardmark {

// Returns the study's environment with the suite and command line of the latest launch. Its facts list the
// launches that resumed the study and what each found different. Throws UsageError if the points of both
// launches would not be comparable.
Environment resumed(const std::string& path, const Environment& before, const Environment& now,
                    GoesOn goes_on);

// Warns if the suite is another file, or the same file with another text.
void warn_of_other_suite(const std::string& path, const Environment& before, const Environment& now);

}  // namespace shardmark
