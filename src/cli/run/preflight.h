// Before anything is measured: device, binding and threads of each rank, and what the facts of all ranks say.
#pragma once

#include <string>
#include <vector>

#include "cli/run/world.h"
#include "doctor/checks.h"
#include "schema/environment.h"
#include "schema/record.h"

namespace shardmark {

struct Preflight {
  at::Device device{at::kCPU};
  std::vector<doctor::RankFacts> ranks;   // on rank 0
  std::vector<doctor::Finding> findings;  // on rank 0

  // What is wrong with the layouts of what is to be measured on these ranks becomes a finding; on rank 0.
  void look_at_layouts(const std::vector<Point>& points);
  void print_warnings(bool quiet) const;         // warnings and where the ranks sit, a line each; on rank 0
  void keep_in(Environment& environment) const;  // on rank 0
};

// output: the study that is to be written; empty for none. Collective; two small gathers, and half a second
// in which all ranks sleep, so that what other processes use can be told.
Preflight gather_facts(const WorldFlags& flags, const Ranks& ranks, const std::string& output);
// The same; what stops a run ends it here with one line.
Preflight preflight(const WorldFlags& flags, const Ranks& ranks, const std::string& output);

}  // namespace shardmark
