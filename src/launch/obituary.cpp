// Understanding mpirun and srun.
#include "launch/obituary.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <regex>

#include "base/exit_status.h"

namespace shardmark {
namespace {

const std::string kOurs = "shardmark: ";

bool is_dashed(const std::string& line) {
  return line.size() > 40 && line.find_first_not_of('-') == std::string::npos;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// What Open MPI says of ranks that ended; we say it ourselves.
bool is_boilerplate(const std::string& text) {
  constexpr const char* kKnown[] = {"Primary job  terminated normally",
                                    "processes exited with non-zero status", "noticed that process rank",
                                    "MPI_ABORT was invoked"};
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* part) { return has(text, part); });
}

std::string signal_text(int number) { return fmt::format("signal {} ({})", number, ::strsignal(number)); }

// "mpirun noticed that process rank 1 with PID 4711 on node n2 exited on signal 9 (Killed)."
std::string death_in(const std::string& block) {
  static const std::regex kNoticed(
      "process rank ([0-9]+) with PID [0-9]+ on node (\\S+) exited on signal ([0-9]+)");
  std::smatch found;
  if (!std::regex_search(block, found, kNoticed)) return "";
  return fmt::format("rank {} on {} was killed by {}", found.str(1), found.str(2),
                     signal_text(std::stoi(found.str(3))));
}

// "srun: error: node2: task 1: Killed", "srun: error: node1: tasks 0-3: Exited with exit code 3"
std::string death_of_task(const std::string& line) {
  static const std::regex kTask("^srun: error: (\\S+): tasks? ([0-9,-]+): (.*)$");
  std::smatch found;
  if (!std::regex_search(line, found, kTask)) return "";
  return fmt::format("rank {} on {}: {}", found.str(2), found.str(1), found.str(3));
}

std::optional<int> status_in(const std::string& death) {
  static const std::regex kExited("Exited with exit code ([0-9]+)$");
  std::smatch found;
  if (!std::regex_search(death, found, kExited)) return {};
  return std::stoi(found.str(1));
}

}  // namespace

void LauncherVoice::take(const std::string& line) {
  if (line.starts_with(kOurs)) last_words_ = line.substr(kOurs.size());
  if (has(line, "oom-kill") || has(line, "oom_kill") || has(line, "Out Of Memory")) ran_out_of_memory_ = true;
  if (death_.empty()) {
    death_ = death_of_task(line);
    first_status_ = status_in(death_);
  }
  if (!block_ && !is_dashed(line)) return show_(line);
  if (!block_) {
    block_.emplace({line});
    return;
  }
  block_->push_back(line);
  if (is_dashed(line)) end_block();
}

void LauncherVoice::end_block() {
  std::string text;  // lines are wrapped anywhere
  for (const std::string& line : *block_) text += line + " ";
  if (death_.empty()) death_ = death_in(text);
  aborted_ = aborted_ || has(text, "MPI_ABORT was invoked");
  if (!is_boilerplate(text))
    for (const std::string& line : *block_) show_(line);
  block_.reset();
}

void LauncherVoice::finish() {
  if (block_) end_block();
}

Obituary obituary(const LauncherVoice& voice, const SupervisedEnd& end, int64_t oom_kills) {
  std::string death = voice.death();
  // An abort without a death is the watchdog's, also where we had to end the launcher ourselves.
  const bool aborted = death.empty() && voice.has_signs_of_death();
  if (end.status == kTimedOut || (end.gave_up && aborted)) return {Outcome::timed_out, voice.last_words()};
  if (end.gave_up && death.empty()) return {Outcome::timed_out, "the ranks did not come up"};
  if (death.empty() && end.status > 128 && end.status <= 128 + SIGRTMAX)
    death = "a rank was killed by " + signal_text(end.status - 128);
  const bool by_kernel = has(death, "signal 9") || has(death, "Killed");
  const bool crashed = end.status > 128 && !voice.first_status();  // "rank 1 on node2: Segmentation fault"
  const bool was_killed = by_kernel || crashed || has(death, "signal");
  if (voice.ran_out_of_memory() || (by_kernel && oom_kills > 0))
    return {Outcome::out_of_memory, death + ": the kernel ended it because memory ran out", true};
  if (by_kernel) death += "; if memory ran out on its node, `dmesg` there says so";
  if (!death.empty()) return {Outcome::failed, death, was_killed};
  if (!voice.last_words().empty()) return {Outcome::failed, voice.last_words()};
  return {Outcome::failed, fmt::format("the job ended with exit status {}", end.status)};
}

int64_t count_oom_kills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  for (int64_t count = 0; file >> name >> count;)
    if (name == "oom_kill") return count;
  return 0;
}

}  // namespace shardmark
