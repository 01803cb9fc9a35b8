// A command of the program: one self-registering file each. Files in cli/ are in every build; those in
// cli/run/ need torch and MPI.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/exit_status.h"
#include "base/registry.h"

namespace shardmark {

struct CommandEntry {
  std::string description;
  // Adds options to the subcommand and returns what to run after parsing; that returns the exit status.
  std::function<int()> (*define)(CLI::App& app);
  bool is_of_all = false;  // it tells of every command: executed by the program that has them all
};

// Whether this program, or the whole one beside it (whole_program.h), has the command.
bool has_command(const std::string& name);

// Thrown after an error was printed, once for all ranks: this one has nothing to add but its exit status.
struct AlreadyReported {
  int status;
};

}  // namespace shardmark
