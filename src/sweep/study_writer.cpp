#include "sweep/study_writer.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace shardmark {

Known StudyWriter::before(const std::string& id) const {
  const auto found = study_->known().find(id);
  return found == study_->known().end() ? Known{.attempts = 0} : found->second;
}

void StudyWriter::begin(const Record& record) {
  const std::lock_guard lock(writing_);
  study_->begin(record);
  under_way_ = record;
}

bool StudyWriter::extend(const std::vector<Series>& columns, bool durable) {
  const std::lock_guard lock(writing_);
  if (!under_way_) return false;
  try {
    study_->extend(under_way_->id, columns, durable);
    has_warned_ = false;
    return true;
  } catch (const std::exception& error) {  // the complete record may still fit on the disk
    if (!std::exchange(has_warned_, true))
      log_warning(std::string("samples could not be written; the study lacks them until the point ends: ") +
                  error.what());
    return false;
  }
}

void StudyWriter::end(const Record& record) {
  const std::lock_guard lock(writing_);
  under_way_.reset();
  study_->append(record);
}

// Called by the watchdog's thread. The thread that measures may be in the middle of a write and hang there
// with the lock, so that the wait for it is short.
void StudyWriter::time_out(const std::string& reason) {
  const std::unique_lock lock(writing_, std::chrono::seconds(1));
  if (!lock || !under_way_) return;
  Record record = *under_way_;
  record.outcome = Outcome::timed_out;
  record.reason = reason;
  record.ended_job = true;
  try {
    study_->append(record);
  } catch (const std::exception& error) {
    log_warning(std::string("the time-out could not be written into the study: ") + error.what());
  }
}

}  // namespace shardmark
