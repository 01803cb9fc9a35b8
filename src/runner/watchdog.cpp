// The watching thread.
#include "runner/watchdog.h"

#include <fmt/format.h>

#include <chrono>

#include "base/log.h"
#include "comm/host_group.h"
#include "device/timeline.h"

namespace shardmark {

Watchdog::Watchdog(std::string who, double timeout_s) : who_(std::move(who)), timeout_s_(timeout_s) {
  if (timeout_s_ > 0) thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::watch(const std::string& point) {
  beat("start");
  const std::lock_guard lock(mutex_);
  point_ = point;
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  point_.clear();
}

void Watchdog::beat(const char* stage) {
  stage_ = stage;
  last_beat_s_ = now_s();
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ending_; })) {
    if (point_.empty() || now_s() - last_beat_s_ < timeout_s_) continue;
    log_line(fmt::format(
        "{}: nothing moved for {:.0f} s in {} of {}; ending the job. Finished points are kept: go on with "
        "--resume, or allow more with --timeout",
        who_, timeout_s_, stage_.load(), point_));
    MpiSession::abort_world(EXIT_FAILURE);
  }
}

}  // namespace shardmark
