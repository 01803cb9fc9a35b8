// Tests of every node, for a suite that ends with a verdict on each (`accept`).
#pragma once

#include <optional>
#include <string>

#include "cli/run/preflight.h"
#include "plan/suite.h"
#include "schema/node_tests.h"

namespace shardmark {

// Whether the suite tests nodes, and how, as rank 0 read it. Collective.
std::optional<Acceptance> agreed_acceptance(const HostGroup& world, const Suite& suite);

// Runs the tests, unless the preflight found something that stops a run (`is_stopped`, the same on all
// ranks), and puts its findings with them. `suite_path` is where a relative baseline may lie. The result is
// on rank 0. Collective.
NodeTests test_nodes(const Acceptance& accept, const std::string& suite_path, const WorldFlags& flags,
                     const Ranks& ranks, const Preflight& checked, bool is_stopped);

}  // namespace shardmark
