// Finds what came with this program: suites and reference studies.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// Returns `installed` below the prefix whose bin/ holds this program, else `of_sources` in the checkout whose
// build folder holds it; empty if neither exists.
std::string shared_folder(const std::string& installed, const std::string& of_sources);

// The reference collection in the working directory, if there is one.
inline constexpr const char* kReferencesHere = "results/reference";
// The study files of that collection and of the one that came with this program.
std::vector<std::string> reference_files();

}  // namespace shardmark
