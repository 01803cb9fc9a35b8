// Scripts that complete command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shardmark {

const std::vector<std::string>& shells_with_completion();

// Prints the script of this shell, for all commands of the program.
void print_completion(CLI::App& program, const std::string& shell);

}  // namespace shardmark
