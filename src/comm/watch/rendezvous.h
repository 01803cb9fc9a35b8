// A timeout for the waits of all ranks in which no MPI call can be used: before MPI has started, and in
// MPI_Finalize.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shardmark {

// The texts of the message.
struct Rendezvous {
  std::string missed;  // such as "the ranks did not find each other"
  std::string advice;  // the last words: what to do
};

// Guards a wait for as long as it lives: first from the start of a command until its watchdog runs, then from
// the watchdog's end to the end of MPI. A rank knows only what /proc says about the ranks that its launcher
// started on the same node. A rank on the node of a stopped rank reports first, because it can name it, then
// rank 0; the launcher ends the others.
class RendezvousGuard {
 public:
  // With timeout_s 0 nothing is ever ended. `say` and `end` are called from the guard's thread, and `end`
  // does not return.
  RendezvousGuard(Rendezvous rendezvous, double timeout_s, std::function<void(const std::string&)> say,
                  std::function<void()> end);
  ~RendezvousGuard();
  RendezvousGuard(const RendezvousGuard&) = delete;
  RendezvousGuard& operator=(const RendezvousGuard&) = delete;

 private:
  bool is_over_within(double seconds);

  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_over_ = false;
  std::thread thread_;  // last: it uses all of the above
};

// The stopped ranks that our launcher started on this node, such as "rank 1 (pid 4711, stopped by a signal)".
std::string stopped_neighbours();

}  // namespace shardmark
