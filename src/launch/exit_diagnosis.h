// Finds out how a job ended from the output and exit status of its launcher. The result becomes the outcome
// and reason of the point that was running.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/process.h"
#include "schema/record.h"

namespace shardmark {

// Reads the launcher's stderr. Open MPI puts its messages in blocks between dashed lines. Blocks about a rank
// or node that ended are parsed and not shown to the user; everything else is passed on.
class LauncherOutput {
 public:
  explicit LauncherOutput(LineSink show) : show_(std::move(show)) {}
  void take(const std::string& line);
  void finish();  // parses or shows a block that was never closed

  // "rank 1 on node2 was killed by signal 9 (Killed)"; empty if no rank or node was lost.
  const std::string& lost_rank() const { return lost_rank_; }
  // The last message of shardmark itself, or the first that begins with "failed: ".
  const std::string& last_message() const { return last_message_; }
  // Why no rank could start, in the launcher's words: "/opt/x on node2: Exec format error". It means nothing
  // if the job opened its study.
  const std::string& start_failure() const { return start_failure_; }
  // The first block that was passed on, in one line. A library that refuses a setting may say so there.
  const std::string& first_shown() const { return first_shown_; }
  // Whether a rank ended or aborted the job, or none could start: the launcher will end soon, too.
  bool is_ending() const { return aborted_ || !lost_rank_.empty() || !start_failure_.empty(); }
  bool ran_out_of_memory() const { return ran_out_of_memory_; }  // as Slurm reports it
  // The exit status of the first task that ended, as Slurm reports it. srun then ends the other tasks and
  // returns their status instead.
  std::optional<int> first_status() const { return first_status_; }

 private:
  void remember(const std::string& words);

  LineSink show_;
  std::optional<std::vector<std::string>> block_;  // lines of the current block, with its first dashes
  std::string lost_rank_, last_message_, start_failure_, first_shown_;
  bool first_is_general_ = false;
  std::optional<int> first_status_;
  bool ran_out_of_memory_ = false, aborted_ = false;
};

struct ExitDiagnosis {
  Outcome outcome = Outcome::failed;
  std::string reason;
  bool was_killed = false;  // a rank was killed by a signal and did not end by itself
};

// oom_kills is the number of OOM kills of this node's kernel while the job ran (count_oom_kills).
ExitDiagnosis diagnose_exit(const LauncherOutput& output, const SupervisedEnd& end, int64_t oom_kills);

// Returns the number of processes that this node's kernel has killed because memory ran out. They are counted
// in this process's memory cgroup (version 1 or 2), to which the ranks of this node belong. If that cannot be
// seen (in a container, in the root of version 2), those of the whole node are counted, including other
// jobs'.
int64_t count_oom_kills();

}  // namespace shardmark
