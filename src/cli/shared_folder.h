// What came with this program: suites, reference studies.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// `installed`, below the prefix that holds bin/ with this program; else `of_sources` in the checkout whose
// build folder holds it; or empty.
std::string shared_folder(const std::string& installed, const std::string& of_sources);

// The reference collection in the working directory, where there is one.
inline constexpr const char* kReferencesHere = "results/reference";
// The study files of that one and of the one that came with this program.
std::vector<std::string> reference_files();

}  // namespace shardmark
