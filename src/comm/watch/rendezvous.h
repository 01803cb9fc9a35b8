// A timeout for waits of all ranks in which MPI cannot be asked: before its start and in its end.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shardmark {

struct Rendezvous {
  std::string missed;  // "the ranks did not find each other"
  std::string advice;  // the message's last words
};

// Active while it lives: from the first line of a command until its watchdog is, and from that one's end
// to MPI's. A rank knows what /proc tells of the ranks that its launcher started on the same node. The node
// of one that is stopped speaks first, then rank 0; the launcher ends the others.
class RendezvousGuard {
 public:
  // timeout_s 0: never ends anything. say, end: called from the guard's thread; end does not return.
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

// Ranks of our launcher on this node that are stopped: "rank 1 (pid 4711, stopped by a signal)".
std::string stopped_neighbours();

}  // namespace shardmark
