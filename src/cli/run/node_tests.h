// Tests of every node, for a suite that ends with a verdict on each (`accept`).
#pragma once

#include <string>

#include "cli/run/preflight.h"
#include "plan/suite.h"
#include "schema/node_tests.h"

namespace shardmark {

// Runs the tests, unless the preflight found something that stops a run, and puts its findings with them. The
// result is on rank 0. Collective.
NodeTests test_nodes(const Suite& suite, const WorldFlags& flags, const Ranks& ranks,
                     const Preflight& checked);

}  // namespace shardmark
