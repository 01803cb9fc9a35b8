// Writes the metrics of a running sweep. The study is read again each time, so that the file has what `report
// --openmetrics` would write at that moment.
#include "cli/run/live_metrics.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "schema/file.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr const char* kNameMetrics = "name a writable file: --openmetrics FILE";
constexpr std::string_view kFirstWords = "# TYPE shardmark_";
constexpr double kReadingShare = 0.02;  // largest share of the sweep's time spent reading

}  // namespace

void LiveMetrics::require_place(const std::string& path) {
  require_regular(path);
  require_writable(path, kNameMetrics);
  auto there = open_input(path, kMostStudyBytes);
  if (!there) return;
  std::string words(kFirstWords.size(), ' ');
  there->read(words.data(), std::ssize(words));
  if (words != kFirstWords)
    throw UsageError(path +
                     " exists and holds something else than metrics of shardmark, which alone are replaced; "
                     "name another file: --openmetrics FILE");
}

LiveMetrics::LiveMetrics(std::string path, std::string study, int64_t num_points)
    : path_(std::move(path)), study_(std::move(study)), num_points_(num_points) {
  progress_.study = std::filesystem::path(study_).stem().string();
  progress_.began_s = since_1970_s();
  write();
}

LiveMetrics::~LiveMetrics() {
  progress_.is_running = false;
  progress_.point.clear();
  write();
}

void LiveMetrics::begin(const Point& point) {
  progress_.point = brief_text(point);
  progress_.point_began_s = since_1970_s();
  write();
}

// Reading takes longer as the study grows. So the next reading waits until the last one was at most the
// allowed share of the time since then. The last reading, after the sweep, does not wait.
void LiveMetrics::read_points() {
  const double begin_s = since_1970_s();
  if (progress_.is_running && begin_s - read_s_ < reading_s_ / kReadingShare) return;
  const StudyData study = read_study(study_, Load::without_samples);
  progress_.num_to_go = study.num_to_go.value_or(0);  // a complete published study has no value
  progress_.num_done = num_points_ - progress_.num_to_go;
  progress_.num_failed = std::count_if(study.records.begin(), study.records.end(),
                                       [](const Record& record) { return is_bad(record.outcome); });
  points_ = point_metrics({study});
  read_s_ = since_1970_s();
  reading_s_ = read_s_ - begin_s;
}

void LiveMetrics::write() {
  try {
    read_points();
    progress_.changed_s = since_1970_s();
    const std::string text = points_ + progress_metrics(progress_) + kEndOfMetrics;
    write_whole(path_, kNameMetrics, [&](std::ostream& out) { out << text; });
  } catch (const std::exception& error) {
    if (!std::exchange(has_warned_, true))
      log_warning(std::string("metrics are not written, and the sweep goes on without them: ") +
                  error.what());
  }
}

}  // namespace shardmark
