// When a flag of a command changes something. What CLI11 can say (one flag needs or excludes another) is
// said where the flag is defined; this says the rest, for every flag of every command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shardmark {

// Checks a parsed command line. UsageError: a flag was given that changes nothing beside the others.
// ContractError: the table in flag_effects.cpp does not know a flag of the command.
void refuse_idle_flags(const std::string& command, const CLI::App& app);

}  // namespace shardmark
