// Finds out how a job ended from the messages of mpirun and srun. A launcher's exit status says little:
// several ranks end at the same time, and most of them only because they lost the connection to the first. So
// the messages are parsed for the rank or node that ended first, and the kernel's count of OOM kills is
// compared before and after.
#include "launch/exit_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/exit_status.h"
#include "base/text.h"

namespace shardmark {
namespace {

constexpr std::string_view kOurs = "shardmark: ", kFailed = "failed: ";

bool is_dashed(const std::string& line) {
  return line.size() > 40 && line.find_first_not_of('-') == std::string::npos;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Open MPI's messages about ranks that ended, which we replace by our own.
bool is_boilerplate(const std::string& text) {
  constexpr const char* kKnown[] = {"Primary job  terminated normally",
                                    "processes exited with non-zero status", "noticed that process rank",
                                    "MPI_ABORT was invoked", "lost communication with a remote daemon"};
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* part) { return has(text, part); });
}

std::string signal_text(int number) { return fmt::format("signal {} ({})", number, ::strsignal(number)); }

std::string lost_node(const std::string& node) { return "the connection to " + node + " was lost"; }

// Finds the rank or node that was lost in a message of Open MPI:
//   mpirun noticed that process rank 1 with PID 4711 on node n2 exited on signal 9 (Killed).
//   ORTE has lost communication with a remote daemon.  Remote daemon: [[21563,0],2] on node n2
std::string lost_rank_in(const std::string& block) {
  static const std::regex noticed(
      "process rank ([0-9]+) with PID [0-9]+ on node (\\S+) exited on signal ([0-9]+)");
  static const std::regex lost("lost communication with a remote daemon.*Remote daemon: \\S+ on node (\\S+)");
  std::smatch found;
  if (std::regex_search(block, found, noticed))
    return fmt::format("rank {} on {} was killed by {}", found.str(1), found.str(2),
                       signal_text(std::stoi(found.str(3))));
  return std::regex_search(block, found, lost) ? lost_node(found.str(1)) : "";
}

// Finds the task or node that was lost in a line of srun:
//   srun: error: node2: task 1: Killed
//   srun: error: node1: tasks 0-3: Exited with exit code 3
//   srun: error: Node failure on node2
std::string lost_task_in(const std::string& line) {
  static const std::regex task("^srun: error: (\\S+): tasks? ([0-9,-]+): (.*)$");
  static const std::regex node_failure("^srun: error: Node failure on (\\S+)$");
  // Slurm's lines are short, and std::regex uses stack for every character.
  if (line.size() > 10000) return "";
  std::smatch found;
  if (std::regex_search(line, found, task))
    return fmt::format("rank {} on {}: {}", found.str(2), found.str(1), found.str(3));
  return std::regex_search(line, found, node_failure) ? lost_node(found.str(1)) : "";
}

// The text of a block in one line, without its dashes.
std::string in_one_line(const std::vector<std::string>& block) {
  constexpr size_t kMost = 400;
  std::string line;
  for (const std::string& part : block) {
    std::istringstream words(is_dashed(part) ? "" : part);
    for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  }
  return line.size() <= kMost ? line : line.substr(0, kMost) + " ...";
}

// The value of a field in a block, such as "/opt/x" in the line "Executable: /opt/x".
std::string field(const std::vector<std::string>& block, const std::string& name) {
  for (const std::string& line : block) {
    const size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos || line.compare(at, name.size() + 1, name + ":") != 0) continue;
    const size_t value = line.find_first_not_of(' ', at + name.size() + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "";
}

// Finds out from a block of Open MPI (4 and 5: mpirun, prterun) why a program could not be started; empty if
// the block says nothing about that.
std::string start_failure_in(const std::vector<std::string>& block, const std::string& text) {
  const auto told = [&](const std::string& what, const std::string& node, const std::string& why) {
    return (what.empty() ? "a program" : what) + (node.empty() ? "" : " on " + node) + ": " + why;
  };
  if (has(text, "could not access or execute an executable"))
    return told(field(block, "Executable"), field(block, "Node"), "no such file, or it may not be executed");
  if (has(text, "unable to find the specified executable file"))
    return told(field(block, "Executable"), field(block, "Node"), "no such program in PATH");
  if (has(text, "could not change to the specified working directory"))
    return told(field(block, "Working directory"), field(block, "Node"), "cannot be the working directory");
  if (has(text, "via the \"execve\" system call"))
    return told(field(block, "Application name"), field(block, "Local host"), field(block, "Error"));
  if (has(text, "unable to start the specified application"))
    return told("", field(block, "Node"), field(block, "Error name"));
  return "";
}

// The same for lines of Slurm and of the dynamic loader:
//   slurmstepd: error: execve(): /opt/x: No such file or directory
//   srun: error: Task launch for StepId=3.0 failed on node node2: ...
//   /opt/x: error while loading shared libraries: libx.so: cannot open shared object file
std::string start_failure_of_line(const std::string& line) {
  const bool by_loader = has(line, ": error while loading shared libraries: ") ||
                         has(line, ": symbol lookup error: ") ||
                         (has(line, ": version `") && has(line, "' not found (required by "));
  if (by_loader) return line;
  const size_t error = std::min(line.find(": error: "), line.find(": fatal: "));
  const bool by_slurm = line.starts_with("srun") || line.starts_with("slurm");
  if (!by_slurm || error == std::string::npos) return "";
  const std::string text = line.substr(line.find(' ', error + 2) + 1);
  const bool found = text.starts_with("execve()") || text.starts_with("couldn't chdir to ") ||
                     text.starts_with("Unable to create step") || text.starts_with("Unable to allocate") ||
                     text.starts_with("Unable to confirm") || (has(text, "launch ") && has(text, "failed")) ||
                     (has(text, "plugin") && (has(text, "cannot find") || has(text, "Couldn't find")));
  return found ? text : "";
}

std::optional<int> status_in(const std::string& crash) {
  static const std::regex exited("Exited with exit code ([0-9]+)$");
  std::smatch found;
  if (!std::regex_search(crash, found, exited)) return {};
  return std::stoi(found.str(1));
}

}  // namespace

void LauncherOutput::take(const std::string& line) {
  if (line.starts_with(kOurs)) remember(line.substr(kOurs.size()));
  if (has(line, "oom-kill") || has(line, "oom_kill") || has(line, "Out Of Memory")) ran_out_of_memory_ = true;
  if (lost_rank_.empty()) {
    lost_rank_ = lost_task_in(line);
    first_status_ = status_in(lost_rank_);
  }
  if (start_failure_.empty()) start_failure_ = start_failure_of_line(line);
  if (!block_ && !is_dashed(line)) return show_(line);
  if (!block_) {
    block_.emplace({line});
    return;
  }
  block_->push_back(line);
  if (is_dashed(line)) finish();
}

// Keeps our own last message. Of several failures the first is kept, because it is the cause: the others lost
// their connection to the rank that failed.
void LauncherOutput::remember(const std::string& words) {
  const bool is_consequence = words.starts_with(kFailed) && last_message_.starts_with(kFailed);
  if (!is_consequence) last_message_ = words;
}

void LauncherOutput::finish() {
  const std::vector<std::string> block = std::exchange(block_, {}).value_or(std::vector<std::string>());
  std::string text;  // Open MPI may wrap a line anywhere
  for (const std::string& line : block) text += line + " ";
  if (lost_rank_.empty()) lost_rank_ = lost_rank_in(text);
  aborted_ = aborted_ || has(text, "MPI_ABORT was invoked");
  const std::string start_failure = start_failure_in(block, text);
  if (start_failure_.empty()) start_failure_ = start_failure;
  if (block.empty() || !start_failure.empty() || is_boilerplate(text)) return;
  // Every rank whose MPI_Init() fails says so in general words, and messages of several ranks may change
  // places.
  const bool is_general = has(text, "It looks like MPI_INIT failed");
  if (first_shown_.empty() || (first_is_general_ && !is_general)) {
    first_shown_ = in_one_line(block);
    first_is_general_ = is_general;
  }
  for (const std::string& line : block) show_(line);
}

// Takes the evidence in this order: a time-out of the watchdog, a launcher that was ended because ranks did
// not start, a lack of memory, the rank or node that was lost first, the rank's own message, and last the
// exit status.
ExitDiagnosis diagnose_exit(const LauncherOutput& output, const SupervisedEnd& end, int64_t oom_kills) {
  std::string crash = output.lost_rank();
  // Only the watchdog aborts without a crash. This also holds if we had to end the launcher ourselves.
  const bool aborted = crash.empty() && output.is_ending();
  if (end.status == kTimedOut || (end.gave_up && aborted)) return {Outcome::timed_out, output.last_message()};
  if (end.gave_up && crash.empty()) return {Outcome::timed_out, "the ranks did not start"};
  if (crash.empty() && end.status > 128 && end.status <= 128 + SIGRTMAX)
    crash = "a rank was killed by " + signal_text(end.status - 128);
  const bool by_kernel = has(crash, "signal 9") || has(crash, "Killed");
  const bool crashed = end.status > 128 && !output.first_status();  // "rank 1 on node2: Segmentation fault"
  const bool was_killed = by_kernel || crashed || has(crash, "signal") || has(crash, "was lost");
  if (output.ran_out_of_memory() || (by_kernel && oom_kills > 0))
    return {Outcome::out_of_memory, crash + ": the kernel ended it because memory ran out", true};
  if (by_kernel) crash += "; if memory ran out on its node, `dmesg` there says so";
  const int status = output.first_status().value_or(end.status);
  const bool is_our_status = status == kUsage || status == kSystem;  // a launcher returns others, mostly 1
  const bool says_why = is_our_status && !output.last_message().empty() && !was_killed;
  // srun knows only the exit status of a rank; the rank's own message says more.
  if (!crash.empty() && !(says_why && output.last_message().starts_with(kFailed)))
    return {Outcome::failed, crash, was_killed};
  if (says_why) return {Outcome::failed, output.last_message()};
  return {Outcome::failed,
          fmt::format("the job ended with exit status {}{}", end.status,
                      output.first_shown().empty() ? "" : ": " + printable(output.first_shown(), ""))};
}

namespace {

// Reads the number of OOM kills from a file whose lines are a name and a number.
std::optional<int64_t> oom_kills_in(const std::string& path) {
  std::ifstream file(path);
  std::string name;
  for (int64_t count = 0; file >> name >> count;)
    if (name == "oom_kill") return count;
  return {};
}

}  // namespace

int64_t count_oom_kills() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "9:memory:/slurm/job_7", "0::/user.slice"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kind = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    const auto count = kind == "memory" ? oom_kills_in("/sys/fs/cgroup/memory" + path + "/memory.oom_control")
                       : kind.empty()   ? oom_kills_in("/sys/fs/cgroup" + path + "/memory.events")
                                        : std::nullopt;
    if (count) return *count;
  }
  return oom_kills_in("/proc/vmstat").value_or(0);
}

}  // namespace shardmark
