// How a job ended, from what its launcher says and returns: what becomes the outcome and reason of the point
// that was running.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/process.h"
#include "schema/record.h"

namespace shardmark {

// Listens to the launcher's stderr. Open MPI wraps what it knows in blocks of boilerplate between dashed
// lines; those about a rank or node that ended are parsed and not shown to the user, everything else is
// passed on.
class LauncherOutput {
 public:
  explicit LauncherOutput(LineSink show) : show_(std::move(show)) {}
  void take(const std::string& line);
  void finish();  // understands, or shows, what was held back

  const std::string& lost_rank() const {
    return lost_rank_;
  }  // "rank 1 on node2 was killed by signal 9 (Killed)"
  const std::string& last_message() const {
    return last_message_;
  }  // our own last line, or first "failed: ..."
  // Why no rank could begin, in the launcher's words: "/opt/x on node2: Exec format error". Of a job that
  // opened its study it means nothing.
  const std::string& start_failure() const { return start_failure_; }
  // The first block that was passed on, in one line: what a library says that refuses a setting.
  const std::string& first_shown() const { return first_shown_; }
  // A rank ended or had the job end, or none could begin: the launcher is about to end, too.
  bool is_ending() const { return aborted_ || !lost_rank_.empty() || !start_failure_.empty(); }
  bool ran_out_of_memory() const { return ran_out_of_memory_; }  // as Slurm tells
  // With which the first task left, as Slurm tells. srun then ends the others, and returns how they ended.
  std::optional<int> first_status() const { return first_status_; }

 private:
  void remember(const std::string& words);

  LineSink show_;
  std::optional<std::vector<std::string>> block_;  // lines since the first dashed one
  std::string lost_rank_, last_message_, start_failure_, first_shown_;
  std::optional<int> first_status_;
  bool ran_out_of_memory_ = false, aborted_ = false;
};

struct ExitDiagnosis {
  Outcome outcome = Outcome::failed;
  std::string reason;
  bool was_killed = false;  // a rank, by a signal: not an end of its own choice
};

// oom_kills: processes of ours that this node's kernel killed for want of memory meanwhile.
ExitDiagnosis diagnose_exit(const LauncherOutput& output, const SupervisedEnd& end, int64_t oom_kills);

// Processes that this node's kernel has killed for want of memory, so far: of this process's memory cgroup
// (version 1 or 2), in which ranks of this node are, too; of the whole node where that is not seen (in a
// container, in the root of version 2), so that those of another's job count as well.
int64_t count_oom_kills();

}  // namespace shardmark
