// The watching thread.
#include "watch/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace shardmark {

Watchdog::Watchdog(int rank, Board board, Seats seats, std::unique_ptr<Channel> channel,
                   WatchdogOptions options)
    : board_(std::move(board)),
      seats_(std::move(seats)),
      channel_(std::move(channel)),
      options_(std::move(options)),
      flight_(board_.own(), options_.clock_s),
      lookout_(board_, seats_, rank, *channel_, options_.lookout) {
  board_.own().pid = ::getpid();
  board_.own().pid_space = own_pid_space();
  board_.own().looked_s = options_.clock_s();
  if (options_.lookout.timeout_s > 0) thread_ = std::thread([this] { run(); });
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

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const Lookout::Order order = lookout_.look(options_.clock_s());
    obey(order);
    lock.lock();
    if (order.end) return;
    const std::chrono::duration<double> pause(options_.every_s / (lookout_.is_busy() ? 40 : 1));
    ends_.wait_for(lock, pause, [this] { return ending_; });
  }
}

void Watchdog::obey(const Lookout::Order& order) {
  if (order.say) {
    options_.say(order.say->message);
    options_.say(order.say->reason);  // last, for whoever keeps the last line: `shardmark launch` does
  }
  if (order.record) {
    const std::lock_guard lock(record_mutex_);
    if (record_) record_(*order.record);
  }
  if (order.end) options_.end_job();
}

}  // namespace shardmark
