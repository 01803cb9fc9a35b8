// Finds suites by file or by name, in the working directory and among those that came with this program.
#pragma once

#include <string>

namespace shardmark {

// The folder of suites that was installed with this program, or that of the checkout whose build folder
// contains the program; empty if there is neither.
std::string installed_suites();

// Returns the file of a suite: the name itself if it is a file; else `quick`, `quick.yaml` or
// `suites/quick.yaml` in ./suites, then in installed_suites(). Throws a UsageError that lists these folders
// if there is none.
std::string find_suite(const std::string& name);

}  // namespace shardmark
