// The schedulers that `submit` writes jobs for. Each is a file of launch/schedulers.
#include "launch/job_script.h"

#include "base/error.h"
#include "base/text.h"

namespace shardmark {

const std::vector<Scheduler>& schedulers() {
  static const std::vector<Scheduler> all = {
      {"slurm", {"sbatch"}, "", "sbatch", true, {"mpirun", "srun"}, slurm_job},
      {"pbs", {"qsub"}, "", "pbs", false, {"mpirun"}, pbs_job},
      {"flux", {"flux", "batch"}, "", "flux", false, {"flux"}, flux_job},
      {"kubernetes", {"kubectl", "create"}, "--filename=", "yaml", false, {"mpirun"}, kubernetes_job},
  };
  return all;
}

const Scheduler& scheduler(const std::string& name) {
  std::string known;
  for (const Scheduler& one : schedulers()) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  throw UsageError("there is no scheduler '" + quoted_line(name) + "'; accepted are " + known);
}

}  // namespace shardmark
