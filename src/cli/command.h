// A command of the program. Each command is a file that registers itself. Files in cli/ are in every build;
// those in cli/run/ need LibTorch and MPI.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/exit_status.h"
#include "base/registry.h"

namespace shardmark {

struct CommandEntry {
  std::string description;
  // Adds options to the subcommand. Returns the function to run after parsing, which returns the exit status.
  std::function<int()> (*define)(CLI::App& app);
};

// Whether this program or shardmark-torch beside it (whole_program.h) has the command.
bool has_command(const std::string& name);

// Thrown after an error was printed, once for all ranks. The rank leaves with this exit status and prints
// nothing.
struct AlreadyReported {
  int status;
};

}  // namespace shardmark
