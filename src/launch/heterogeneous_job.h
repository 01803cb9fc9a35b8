// A heterogeneous Slurm job: several groups of nodes with resources of their own (sbatch ... : ...). What
// Slurm tells without naming a group is of the first one, so a launcher that reads only that uses part of the
// job. Source: slurm.schedmd.com/heterogeneous_jobs.html.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace shardmark {

struct HeterogeneousJob {
  int64_t groups = 0;
  int64_t nodes = 0;  // of all groups; a group that does not tell counts as 1
};

// variable: an environment variable, empty where it is not set. Nothing outside of such a job, or where the
// variables are those of another job (sbatch hands on what it was started with).
std::optional<HeterogeneousJob> heterogeneous_job(
    const std::function<std::string(const std::string& name)>& variable);

// "this Slurm job has 2 heterogeneous groups with 3 nodes in all (SLURM_HET_SIZE), and " + trouble + what to
// do.
std::string refusal_of(const HeterogeneousJob& job, const std::string& trouble);

}  // namespace shardmark
