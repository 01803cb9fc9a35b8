// The thread that polls the hang monitor.
#include "comm/watch/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace shardmark {

Watchdog::Watchdog(int rank, NodeHeartbeats heartbeats, NodeMap node_map, std::unique_ptr<Channel> channel,
                   WatchdogOptions options)
    : heartbeats_(std::move(heartbeats)),
      node_map_(std::move(node_map)),
      channel_(std::move(channel)),
      options_(std::move(options)),
      heartbeat_(heartbeats_.own(), options_.clock_s),
      monitor_(heartbeats_, node_map_, rank, *channel_, options_.monitor) {
  heartbeats_.own().pid = ::getpid();
  heartbeats_.own().pid_space = own_pid_space();
  heartbeats_.own().looked_s = options_.clock_s();
  if (options_.monitor.timeout_s > 0) thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::on_finding(std::function<void(const std::string& reason)> record) {
  const std::lock_guard lock(record_mutex_);
  record_ = std::move(record);
}

// The lock is not held while the monitor looks and its order is carried out, so that the destructor never
// waits for the lock. It does wait for the thread, and therefore for the end of an order.
void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const HangMonitor::Order order = monitor_.look(options_.clock_s());
    obey(order);
    lock.lock();
    if (order.end) return;
    const std::chrono::duration<double> pause(options_.every_s / (monitor_.is_busy() ? 40 : 1));
    ends_.wait_for(lock, pause, [this] { return ending_; });
  }
}

void Watchdog::obey(const HangMonitor::Order& order) {
  if (order.say) {
    options_.say(order.say->message);
    // The reason comes last because `shardmark launch` keeps the last line.
    options_.say(order.say->reason);
  }
  if (order.record) {
    const std::lock_guard lock(record_mutex_);
    if (record_) record_(*order.record);
  }
  if (order.end) options_.end_job();
}

}  // namespace shardmark
