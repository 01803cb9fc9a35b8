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
};

// The program with all commands, shardmark-torch beside this one, which is executed for those that need
// LibTorch, MPI or CUDA: their libraries take half a second to load. "" where there is none: in a build of
// the analysis alone, and in that program itself.
std::string whole_program();
// Whether this program or that one has the command.
bool has_command(const std::string& name);

// Thrown after an error was printed, once for all ranks: this one has nothing to add but its exit status.
struct AlreadyReported {
  int status;
};

}  // namespace shardmark
