// Flags that change a suite from the command line; the same for every command that reads a suite.
#pragma once

#include <CLI/CLI.hpp>

#include "plan/suite.h"

namespace shardmark {

// Adds a list flag for each axis that has one (schema/axes.h), --steps, --repeats and --duration, and --set
// for every other key of a suite. To be called once per command; `overrides` must outlive the parsing.
void add_override_flags(CLI::App& command, Overrides& overrides);

}  // namespace shardmark
