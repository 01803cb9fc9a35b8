// Progress on stderr, so that stdout stays for tables.
#include "sweep/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "device/timeline.h"
#include "schema/throughput.h"
#include "strategies/brief_text.h"

namespace shardmark {

std::string headline(const Record& record) {
  if (record.outcome != Outcome::ok) {
    const std::string outcome = std::string(to_text(record.outcome)) + ": ";  // a check's text begins with it
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

}  // namespace

Progress::Progress(int64_t num_points, int64_t num_before, bool quiet)
    : num_points_(num_points),
      num_before_(num_before),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_s_(now_s()) {}

Progress::~Progress() {
  if (!quiet_ && terminal_) log_raw("\r\033[K");
}

void Progress::begin(const Point& point) {
  if (quiet_ || !terminal_) return;
  log_raw(fmt::format("\r\033[K[{}/{}] {}{}", num_before_ + num_done_ + 1, num_points_,
                      printable(brief_text(point), ""), time_left()));
}

void Progress::end(const Record& record) {
  if (quiet_) return;
  if (terminal_ && record.outcome == Outcome::ok && record.reason.empty()) {
    log_raw(fmt::format("\r\033[K[{}/{}] {}{}", num_before_ + num_done_ + 1, num_points_, shown(record),
                        time_left()));
  } else {
    log_raw(fmt::format("{}[{}/{}] {}\n", terminal_ ? "\r\033[K" : "", num_before_ + num_done_ + 1,
                        num_points_, shown(record)));
  }
}

void Progress::count() { ++num_done_; }

std::string Progress::time_left() const {
  if (num_done_ == 0) return "";
  const double per_point = (now_s() - begin_s_) / static_cast<double>(num_done_);
  return ", about " + format_seconds(per_point * static_cast<double>(num_points_ - num_before_ - num_done_)) +
         " left";
}

}  // namespace shardmark
