// Prints progress to stderr, so that stdout has only tables.
#include "sweep/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "device/timeline.h"
#include "plan/plan.h"
#include "schema/throughput.h"
#include "strategies/brief_text.h"

namespace shardmark {

std::string headline(const Record& record) {
  if (record.outcome != Outcome::ok) {
    // The text of a failed check already begins with its outcome.
    const std::string outcome = std::string(to_text(record.outcome)) + ": ";
    return record.reason.starts_with(outcome) ? record.reason : outcome + record.reason;
  }
  const auto& m = record.measures;
  const std::string rate = record.point.workload == "training"
                               ? throughput_of(record.point, m).text()
                               : format_number(m.busbw_gb_s, 3) + " GB/s busbw";
  return fmt::format("{}, {} a step{}", rate, format_seconds(m.step_s),
                     record.reason.empty() ? "" : "; " + record.reason);
}

namespace {

std::string shown(const Record& record) {
  return printable(brief_text(record.point) + ": " + headline(record), "");
}

double sum_of_limits(const std::vector<Point>& points) {
  double sum_s = 0;
  for (const Point& point : points) sum_s += time_limit_s(point);
  return sum_s;
}

}  // namespace

Progress::Progress(const std::vector<Point>& to_do, int64_t num_before, ProgressOn where)
    : num_points_(std::ssize(to_do) + num_before),
      num_before_(num_before),
      where_(where),
      begin_s_(now_s()),
      time_left_(sum_of_limits(to_do)) {
  if (where_ != ProgressOn::nothing)
    watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Progress::~Progress() {
  if (watcher_.joinable()) {
    watcher_.request_stop();
    watcher_.join();
  }
  if (where_ == ProgressOn::launch) log_raw("\r\n");
  line_.clear();
}

// A point may take hours, and then only this thread reports the time. It wakes up once per second (every half
// minute in a log), which is far less than what interrupts a computing thread anyway.
void Progress::watch(const std::stop_token& stop) {
  const auto pause = std::chrono::seconds(where_ == ProgressOn::log ? 30 : 1);
  std::unique_lock lock(writing_);
  while (!waiting_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    if (where_ == ProgressOn::log)
      log_raw(head(num_before_ + num_done_) + "\n");
    else
      show(current_);
  }
}

void Progress::begin(const Point& planned, const Point& point) {
  if (where_ == ProgressOn::nothing) return;
  const std::lock_guard lock(writing_);
  time_left_.begin(time_limit_s(planned));
  current_ = printable(brief_text(point), "");
  if (where_ != ProgressOn::log) show(current_);
}

void Progress::end(const Record& record) {
  if (where_ == ProgressOn::nothing) return;
  const std::lock_guard lock(writing_);
  current_ = shown(record);
  const bool stays = where_ == ProgressOn::log || record.outcome != Outcome::ok || !record.reason.empty();
  if (!stays) return show(current_);
  line_.clear();
  log_raw(fmt::format("[{}/{}] {}\n", num_before_ + num_done_ + 1, num_points_, current_));
}

void Progress::count() {
  if (where_ == ProgressOn::nothing) return;
  const std::lock_guard lock(writing_);
  ++num_done_;
  time_left_.end(now_s() - begin_s_);
}

std::string Progress::head(int64_t number) const {
  const double elapsed_s = now_s() - begin_s_;
  return progress_text(number, num_points_, elapsed_s, time_left_.left_s(elapsed_s));
}

void Progress::show(const std::string& what) {
  const std::string text =
      head(std::min(num_before_ + num_done_ + 1, num_points_)) + (what.empty() ? "" : ": " + what);
  if (where_ == ProgressOn::launch)
    log_raw("\r" + text + "\n");
  else
    line_.show(text);
}

}  // namespace shardmark
