// Writes the script for sbatch of a Slurm job that runs a suite, or of a job array that runs several.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardmark {

struct JobOptions {
  std::vector<std::string> suites;  // several suites become a job array
  int64_t nodes = 1;
  int64_t gpus_per_node = 0;   // 0: CPU ranks
  int64_t ranks_per_node = 0;  // 0: from env_file, else one per GPU or core
  std::string launcher;        // empty: from env_file, else mpirun
  std::string study;           // empty: results/<suite>-job<id>.h5
  bool rerun_failed = false;   // rerun the failed points of that study
  // Options that sbatch prefers to the directives of the script: flags, and variables such as
  // SBATCH_PARTITION. Flags win over variables. The script repeats them as directives, so that sbatch gives
  // the same result when it is called by hand.
  std::vector<std::string> sbatch_flags;
  std::map<std::string, std::string> sbatch_variables;
  double time_limit_s = 3600;
  int64_t signal_ahead_s = 120;  // seconds from the signal to the time limit
  std::string folder;            // where the job runs
  std::string program;
  std::string env_file;             // sourced if it exists
  std::string results = "results";  // folder of studies and logs
  std::vector<std::string> flags;   // flags of shardmark run
  std::string time_reason;          // comment in the script: why this time limit
};

// Throws UsageError for a value that a script cannot hold: a line break, or in a directive also a blank.
std::string job_script(const JobOptions& options);

// Quotes any text as one word of a shell: 'it'\''s'.
std::string quoted(const std::string& text);

// "1-02:30:00", rounded up to whole minutes, as Slurm counts. Throws UsageError for a time that Slurm cannot
// represent.
std::string slurm_time(double seconds);

}  // namespace shardmark
