// Ends the job when nothing moves: a rank that sees no progress for the timeout says where it stands and
// aborts the world, so that a hang costs minutes, not the job's time limit. What was measured before is in
// the journal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace shardmark {

class Watchdog {
 public:
  // who: "rank 3 on node7". timeout_s 0: never barks.
  Watchdog(std::string who, double timeout_s);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch(const std::string& point);  // a point begins
  void rest();                           // no point: waiting is allowed
  void beat(const char* stage);          // something moved. `stage` must be a literal

 private:
  void run();
  std::string who_;
  double timeout_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string point_;  // empty: resting
  std::atomic<const char*> stage_{""};
  std::atomic<double> last_beat_s_{0};
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace shardmark
