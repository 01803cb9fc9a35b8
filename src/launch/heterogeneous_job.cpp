// Reads the groups of a heterogeneous Slurm job from its environment.
#include "launch/heterogeneous_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace shardmark {
namespace {

constexpr const char* kSize = "SLURM_HET_SIZE";
constexpr int64_t kMostGroups = 1024;  // Slurm has a limit of 128

}  // namespace

std::optional<HeterogeneousJob> heterogeneous_job(
    const std::function<std::string(const std::string& name)>& variable) {
  HeterogeneousJob job{std::min<int64_t>(std::atoll(variable(kSize).c_str()), kMostGroups)};
  if (job.groups < 2) return {};
  const std::string own = variable("SLURM_JOB_ID");
  bool tells_ids = false, is_own = false;
  for (int64_t group = 0; group < job.groups; ++group) {
    const auto of_group = [&](const char* name) {
      return variable(fmt::format("{}_HET_GROUP_{}", name, group));
    };
    const std::string id = of_group("SLURM_JOB_ID");
    tells_ids |= !id.empty();
    is_own |= id == own;
    job.nodes += std::max<int64_t>(std::atoll(of_group("SLURM_JOB_NUM_NODES").c_str()), 1);
  }
  // The variables of a heterogeneous job may be inherited by another job that was submitted from within it.
  // Then none of the groups has the id of this job.
  if (tells_ids && !own.empty() && !is_own) return {};
  return job;
}

std::string refusal_of(const HeterogeneousJob& job, const std::string& trouble) {
  std::string groups;
  for (int64_t group = 0; group < job.groups; ++group)
    groups += fmt::format("{}{}", group == 0 ? "" : ",", group);
  return fmt::format(
      "this Slurm job has {} heterogeneous groups with {} nodes in all ({}), and {}; to use all of them: "
      "srun "
      "--mpi=pmix --het-group={} shardmark run SUITE -o STUDY; to use one group alone: unset {}",
      job.groups, job.nodes, kSize, trouble, groups, kSize);
}

}  // namespace shardmark
