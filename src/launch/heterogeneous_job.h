// A heterogeneous Slurm job: several groups of nodes with different resources (sbatch ... : ...). Variables
// of Slurm that do not name a group describe the first one, so a launcher that reads only those uses only
// part of the job. Source: slurm.schedmd.com/heterogeneous_jobs.html.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace shardmark {

struct HeterogeneousJob {
  int64_t groups = 0;
  int64_t nodes = 0;  // nodes of all groups; an unknown number counts as 1
};

// variable(name) returns an environment variable; empty if it is not set. Returns nothing outside of such a
// job, or if the variables belong to another job (sbatch passes on the environment in which it was called).
std::optional<HeterogeneousJob> heterogeneous_job(
    const std::function<std::string(const std::string& name)>& variable);

// The error message: "this Slurm job has 2 heterogeneous groups with 3 nodes in all (SLURM_HET_SIZE), and " +
// trouble + what to do.
std::string refusal_of(const HeterogeneousJob& job, const std::string& trouble);

}  // namespace shardmark
