// The thread that runs the hang monitor (comm/watch/hang_monitor.h), prints what it found, and ends the job:
// a hang costs minutes and not the job's time limit.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "comm/watch/hang_monitor.h"

namespace shardmark {

struct WatchdogOptions {
  HangMonitorOptions monitor;
  double every_s = 0.4;  // between looks; a fortieth of it while others are asked
  double (*clock_s)() = watch_clock_s;
  std::function<void(const std::string& text)> say;  // the message, then the reason
  std::function<void()> end_job;                     // need not return
};

class Watchdog {
 public:
  // timeout 0: never barks, and has no thread. node_map: of all ranks; heartbeats: of this node.
  Watchdog(int rank, NodeHeartbeats heartbeats, NodeMap node_map, std::unique_ptr<Channel> channel,
           WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  Heartbeat& heartbeat() { return heartbeat_; }  // of this rank

  // On rank 0, once, from the watchdog's thread and before the job ends: the reason, for the record of the
  // point that ran. The thread that measures may be anywhere, also in the middle of a write. An empty
  // function: nothing. Returns when no call of an earlier function is running.
  void on_finding(std::function<void(const std::string& reason)> record);

 private:
  void run();
  void obey(const HangMonitor::Order& order);

  NodeHeartbeats heartbeats_;
  NodeMap node_map_;
  std::unique_ptr<Channel> channel_;
  WatchdogOptions options_;
  Heartbeat heartbeat_;
  HangMonitor monitor_;
  std::mutex mutex_;  // of what follows
  std::condition_variable ends_;
  bool ending_ = false;
  std::mutex record_mutex_;
  std::function<void(const std::string&)> record_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace shardmark
