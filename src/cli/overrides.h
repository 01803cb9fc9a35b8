// The flags that change a suite from the command line, the same for every command that reads one.
#pragma once

#include <CLI/CLI.hpp>

#include "plan/suite.h"

namespace shardmark {

// --ranks/--gpus, --strategies, --models, --batch-sizes, --optimizers, --precisions, --steps, --repeats,
// --seed,
// --time-limit. Call it once per command, with overrides that outlive the parsing.
void add_override_flags(CLI::App& command, Overrides& overrides);

}  // namespace shardmark
