// The thread that runs the hang monitor (comm/watch/hang_monitor.h), prints what it found, and ends the job.
// So a hang costs minutes instead of the whole time limit of the job.
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
  // Time between polls. While other nodes are being asked, it is 40 times shorter.
  double every_s = 0.4;
  double (*clock_s)() = watch_clock_s;
  // Called with the message, then with the reason.
  std::function<void(const std::string& text)> say;
  std::function<void()> end_job;  // may return
};

class Watchdog {
 public:
  // With timeout 0 the watchdog has no thread and never ends the job. `node_map` covers all ranks,
  // `heartbeats` this node.
  Watchdog(int rank, NodeHeartbeats heartbeats, NodeMap node_map, std::unique_ptr<Channel> channel,
           WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  Heartbeat& heartbeat() { return heartbeat_; }  // of this rank

  // Sets the function that records a finding. It is called on rank 0, once, from the watchdog's thread and
  // before the job ends, with the reason for the record of the configuration that ran. The thread that
  // measures may be anywhere then, even in the middle of a write. An empty function turns recording off. When
  // this returns, no call of an earlier function is running.
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
  std::mutex mutex_;  // guards ending_
  std::condition_variable ends_;
  bool ending_ = false;
  std::mutex record_mutex_;
  std::function<void(const std::string&)> record_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace shardmark
