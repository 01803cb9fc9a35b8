// A training run in its study. The curves are written while the run goes on: if its ranks are killed, or its
// disk is full, the study lacks only the last second or the last hundredth of the run, and a later launch can
// continue it.
#pragma once

#include <optional>
#include <string>

#include "comm/watch/watchdog.h"
#include "schema/study.h"
#include "sweep/study_writer.h"
#include "train/lines.h"

namespace shardmark {

class RunStudy {
 public:
  // Used on the rank that writes. With `resumes` it continues the existing study, and in it the record of the
  // same configuration if that record reaches first_step; what the record holds of later steps is
  // overwritten. Otherwise the steps get a record of their own. A finding of the watchdog is recorded; the
  // watchdog must outlive this object. Throws UsageError.
  RunStudy(const std::string& path, const Environment& environment, const Point& point, int64_t first_step,
           bool resumes, Watchdog& watchdog);
  ~RunStudy();
  RunStudy(const RunStudy&) = delete;
  RunStudy& operator=(const RunStudy&) = delete;

  const Record& record() const { return record_; }  // as it begins, without samples
  const Curves& before() const { return before_; }  // up to first_step

  // Writes what was added to the curves, if the last write was long enough ago.
  void follow(const Curves& curves);
  // Writes it at once and durably, because a checkpoint is about to be written from which the run may
  // continue.
  void secure(const Curves& curves);
  // Writes the complete record and publishes the study.
  void end(const Record& record);

 private:
  void take_over(int64_t first_step);
  void extend(const Curves& curves, bool durable);

  std::string path_;
  Record record_;
  Curves before_;
  std::optional<Study> study_;
  std::optional<StudyWriter> writer_;
  Curves::Sizes written_ = {};
  double begin_s_, last_s_;
  Watchdog& watchdog_;
};

}  // namespace shardmark
