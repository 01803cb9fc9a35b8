// Suites by file or by name: those in the working directory, and those that came with this program.
#pragma once

#include <string>

namespace shardmark {

// The folder that was installed with this program, or that of the checkout whose build folder holds it; or
// empty.
std::string installed_suites();

// The file of a suite: the name itself; else `quick`, `quick.yaml` or `suites/quick.yaml` in ./suites, then
// in installed_suites(). UsageError: there is none, with the folders that were looked in.
std::string find_suite(const std::string& name);

}  // namespace shardmark
