// Decides whether the flags of a command have an effect. What CLI11 can express (a flag needs or excludes
// another) is declared with the flag; this handles all other cases, for every flag of every command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shardmark {

// Checks a parsed command line. Throws UsageError if a flag changes nothing together with the others, and
// ContractError if the table in flag_effects.cpp lacks a flag of the command.
void refuse_idle_flags(const std::string& command, const CLI::App& app);

}  // namespace shardmark
