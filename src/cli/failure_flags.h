// The flag about failures of nodes, shared by predict and report.
#pragma once

#include <CLI/CLI.hpp>

#include "analysis/stats/goodput.h"

namespace shardmark {

// Adds --failures KEY=VALUE..., which asks for goodput. `query` must outlive the parsing.
void add_failure_flags(CLI::App& app, FailureQuery& query);

}  // namespace shardmark
