// The flags that change a suite from the command line, the same for every command that reads one.
#pragma once

#include <CLI/CLI.hpp>

#include "plan/suite.h"

namespace shardmark {

// A list for each axis that has a flag (schema/axes.h), and --steps, --repeats, --seed, --time-limit,
// --duration. Call it once per command, with overrides that outlive the parsing.
void add_override_flags(CLI::App& command, Overrides& overrides);

}  // namespace shardmark
