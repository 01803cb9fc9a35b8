// Before ranks can hear of each other: a start that waits for one of them ends, too.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shardmark {

// From the first line of a command until its watchdog looks out. A rank knows by then what /proc tells of the
// ranks that its launcher started on the same node. The node of one that is stopped speaks first, then rank
// 0; the launcher ends the others.
class StartGuard {
 public:
  // timeout_s 0: never ends anything. say, end: called from the guard's thread; end does not return.
  StartGuard(double timeout_s, std::function<void(const std::string&)> say, std::function<void()> end);
  ~StartGuard();
  StartGuard(const StartGuard&) = delete;
  StartGuard& operator=(const StartGuard&) = delete;

 private:
  bool has_come_up_within(double seconds);

  std::mutex mutex_;
  std::condition_variable comes_up_;
  bool is_up_ = false;
  std::thread thread_;  // last: it uses all of the above
};

// Ranks of our launcher on this node that are stopped: "rank 1 (pid 4711, stopped by a signal)".
std::string stopped_neighbours();

}  // namespace shardmark
