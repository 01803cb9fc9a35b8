// The preflight, before anything is measured: chooses the device, binding and threads of each rank, and
// checks the facts of all ranks for problems.
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

  // Adds findings about the parallel layouts of these points on these ranks; on rank 0.
  void look_at_layouts(const std::vector<Point>& points);
  // Prints warnings and the placement of ranks, one line each; on rank 0.
  void print_warnings(bool quiet) const;
  void keep_in(Environment& environment) const;  // on rank 0
  // The first finding that would stop a run, in one line; empty if there is none. On rank 0.
  std::string stopper() const;
  // Whether such a finding concerns the job, or all nodes alike, so that it says nothing about any of them.
  bool is_stopped_for_all() const;
};

// `output` is the study to be written; empty if there is none. Collective: two small gathers, and half a
// second in which all ranks sleep, so that the load by other processes can be measured.
Preflight gather_facts(const WorldFlags& flags, const Ranks& ranks, const std::string& output,
                       bool judges_nodes = false);
// The same; a finding that would stop a run ends it here with one line. Where nodes are to be judged, it does
// so only if it concerns all of them alike; one about some nodes is evidence, and nothing is measured.
Preflight preflight(const WorldFlags& flags, const Ranks& ranks, const std::string& output,
                    bool judges_nodes = false);

}  // namespace shardmark
