// The script for qsub of PBS Professional and OpenPBS.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "launch/schedulers/job_text.h"

namespace shardmark {
namespace {

// "26:30:00", rounded up to whole minutes.
std::string walltime(double seconds) {
  const auto minutes = static_cast<int64_t>(std::ceil(seconds / 60));
  return fmt::format("{}:{:02}:00", minutes / 60, minutes % 60);
}

std::string directives(const JobOptions& o, int64_t ranks_per_node) {
  Directives all("#PBS ");
  all.set("N", job_name(o));
  const std::string gpus = o.gpus_per_node > 0 ? fmt::format(":ngpus={}", o.gpus_per_node) : "";
  all.set("l",
          fmt::format("select={}:ncpus={}:mpiprocs={}{}", o.nodes, ranks_per_node, ranks_per_node, gpus));
  all.set("l", "place=scatter:excl");
  all.comment(o.time_reason);
  all.set("l", "walltime=" + walltime(o.time_limit_s));
  all.comment("If a node fails, PBS runs the job again, and it goes on with the same study:");
  all.set("r", "y");
  all.set("j", "oe");
  all.set("o", kResultsOfJobs + std::string("/"));
  const std::vector<SubmitFlag> flags = parsed_flags(o.submit_flags);
  refuse_time_limit(flags, "l", "walltime=");
  all.set_flags(flags);
  return all.text();
}

}  // namespace

std::string pbs_job(const JobOptions& o) {
  require_one_line(o.suites.front());
  const int64_t ranks_per_node = o.ranks_per_node > 0 ? o.ranks_per_node : o.gpus_per_node;
  if (ranks_per_node == 0)
    throw UsageError(
        "PBS has to be asked for the cores of a node: give --ranks-per-node, or --gpus-per-node");
  std::string text = "#!/usr/bin/env bash\n";
  text += "# Written by `shardmark submit --to pbs`. Whatever ends it, every finished point is kept.\n" +
          directives(o, ranks_per_node) + "set -euo pipefail\n\n" + environment_lines(o, "mpirun");
  text += "job=${PBS_JOBID%%.*}\n";
  text +=
      "# The file of nodes has a line for each rank. mpirun needs it if it was built without PBS's task "
      "manager.\n"
      "ranks=$(wc -l <\"$PBS_NODEFILE\")\n"
      "RANKS_PER_NODE=$((ranks / $(sort -u \"$PBS_NODEFILE\" | wc -l)))\n"
      "flags+=(--hostfile \"$PBS_NODEFILE\")\n";
  return text + resubmitting_lines(o, "-n \"$ranks\"", "qsub");
}

}  // namespace shardmark
