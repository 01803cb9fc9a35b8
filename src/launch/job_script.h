// Writes the job of a suite for a batch system: Slurm, PBS, Flux, or Kubernetes with the MPI operator. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardmark {

inline constexpr const char* kResultsOfJobs = "results";  // folder of studies and logs, in that of the job

struct JobOptions {
  std::vector<std::string> suites;  // several need a scheduler that has arrays
  int64_t nodes = 1;
  int64_t gpus_per_node = 0;   // 0: CPU ranks
  int64_t ranks_per_node = 0;  // 0: from env_file, else one per GPU or core
  std::string launcher;        // empty: from env_file, else the scheduler's first
  std::string study;           // empty: results/<suite>-job<id>.h5
  bool rerun_failed = false;   // rerun the failed points of that study
  // Flags for the command that submits, and the variables of its environment that matter to a scheduler. The
  // job repeats them where it can, so that it means the same when it is submitted by hand.
  std::vector<std::string> submit_flags;
  std::map<std::string, std::string> variables;
  double time_limit_s = 3600;
  int64_t signal_ahead_s = 120;  // seconds from the signal to the time limit
  std::string folder;            // where the job runs
  std::string program;
  std::string env_file;            // sourced if it exists
  std::vector<std::string> flags;  // flags of shardmark run
  std::string time_reason;         // comment in the job: why this time limit
  std::string suite_text;          // of the first suite, for pods, which do not see its file
};

struct Scheduler {
  const char* name;                    // of submit --to
  std::vector<std::string> command;    // which takes flags and the file of a job: sbatch
  const char* before_file;             // "--filename=": the rest of that last word is the file
  const char* extension;               // of that file: submit-0001.sbatch
  bool has_arrays;                     // several suites are one job; otherwise each is a job of its own
  std::vector<std::string> launchers;  // that start ranks in its jobs; the first is the default
  // Throws UsageError for a value that a job cannot hold: a line break, or in a directive also a blank.
  std::string (*job)(const JobOptions& options);
};

// The first one is the default.
const std::vector<Scheduler>& schedulers();
// Throws UsageError.
const Scheduler& scheduler(const std::string& name);

std::string slurm_job(const JobOptions& options);
std::string pbs_job(const JobOptions& options);
std::string flux_job(const JobOptions& options);
std::string kubernetes_job(const JobOptions& options);

// Quotes any text as one word of a shell: 'it'\''s'.
std::string quoted(const std::string& text);

// "1-02:30:00", rounded up to whole minutes, as Slurm counts. Throws UsageError for a time that Slurm cannot
// represent.
std::string slurm_time(double seconds);

}  // namespace shardmark
