// A Slurm job that runs a suite, or an array of jobs for several: the text of the script for sbatch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardmark {

struct JobOptions {
  std::vector<std::string> suites;  // several become an array
  int64_t nodes = 1;
  int64_t gpus_per_node = 0;   // 0: CPU ranks
  int64_t ranks_per_node = 0;  // 0: what env_file says, else one per GPU, or per core
  std::string launcher;        // empty: what env_file says, else mpirun
  std::string study;           // empty: results/<suite>-job<id>.h5
  bool rerun_failed = false;   // of that study
  // What sbatch takes before the script's own directives: flags, and variables such as SBATCH_PARTITION,
  // which flags precede. The script has them as directives, too, so that sbatch by hand does the same with
  // it.
  std::vector<std::string> sbatch_flags;
  std::map<std::string, std::string> sbatch_variables;
  double time_limit_s = 3600;
  int64_t signal_ahead_s = 120;  // before the time limit
  std::string folder;            // where the job runs
  std::string program;
  std::string env_file;             // sourced if it is there
  std::string results = "results";  // studies and logs
  std::vector<std::string> flags;   // of shardmark run
  std::string time_reason;          // a comment: where the limit comes from
};

// UsageError: a value that a script cannot hold (a line break, in a directive also a blank).
std::string job_script(const JobOptions& options);

// One word of a shell, whatever the text: 'it'\''s'.
std::string quoted(const std::string& text);

// "1-02:30:00", whole minutes up, as Slurm counts them. UsageError: a time that Slurm cannot hold.
std::string slurm_time(double seconds);

}  // namespace shardmark
