// A thread that times a wait, and looks at processes in /proc.
#include "comm/watch/rendezvous.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/node.h"
#include "comm/watch/node_heartbeats.h"

namespace shardmark {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A number that the launcher put into the environment of a process; -1 if there is none.
int64_t variable(const std::string& process, std::initializer_list<const char*> names) {
  const std::string all = '\0' + text_of("/proc/" + process + "/environ");
  for (const char* name : names) {
    const std::string begin = std::string(1, '\0') + name + "=";
    if (const size_t at = all.find(begin); at != std::string::npos)
      return std::atoll(all.c_str() + at + begin.size());
  }
  return -1;
}

int64_t rank_of(const std::string& process) {
  return variable(process, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
}
int64_t own_local_rank() {
  return std::max<int64_t>(variable("self", {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}), 0);
}

// Seconds after the timeout until this rank reports. A node that knows who is stopped comes first, then rank
// 0, then the other ranks.
double own_turn_s(bool knows) {
  const auto rank = static_cast<double>(std::max<int64_t>(rank_of("self"), 0));
  return knows ? 0.3 * static_cast<double>(own_local_rank()) : 3 + 2 * std::min(rank, 1.0) + 0.1 * rank;
}

}  // namespace

std::string stopped_neighbours() {
  std::string found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string process = entry.path().filename();
    const int64_t pid = std::atoll(process.c_str());
    if (pid == 0 || pid == ::getpid()) continue;
    const auto [state, parent] = process_stat(pid);
    if (parent != ::getppid()) continue;
    const int64_t rank = rank_of(process);
    if (rank < 0 || (state != 'T' && state != 't')) continue;
    found += fmt::format("{}rank {} on {} (pid {}, stopped by a {})", found.empty() ? "" : ", ", rank,
                         host_name(), pid, state == 'T' ? "signal" : "debugger");
  }
  return found;
}

RendezvousGuard::RendezvousGuard(Rendezvous rendezvous, double timeout_s,
                                 std::function<void(const std::string&)> say, std::function<void()> end) {
  if (timeout_s <= 0) return;
  auto watch = [this, rendezvous = std::move(rendezvous), timeout_s, say = std::move(say),
                end = std::move(end)] {
    if (is_over_within(timeout_s)) return;
    std::string stopped = stopped_neighbours();
    if (is_over_within(own_turn_s(!stopped.empty()))) return;
    if (stopped.empty()) stopped = stopped_neighbours();
    const std::string who = stopped.empty() ? "no rank on " + host_name() +
                                                  " is stopped, so it is another node or the network between"
                                            : "behind: " + stopped;
    const std::string what = fmt::format("{} within {:.0f} s", rendezvous.missed, timeout_s);
    say(fmt::format("watchdog: {}\n  {}\n  ending the job; {}", what, who, rendezvous.advice));
    say(what + ": " + who);
    end();
  };
  try {
    thread_ = std::thread(std::move(watch));
    // No more threads can be created. That is no reason to end; the wait goes unguarded.
  } catch (const std::system_error&) {
  }
}

RendezvousGuard::~RendezvousGuard() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ends_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool RendezvousGuard::is_over_within(double seconds) {
  std::unique_lock lock(mutex_);
  return ends_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_over_; });
}

}  // namespace shardmark
