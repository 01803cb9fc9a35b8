// A training run in its study. Its curves are written there as they come: where its ranks are killed, or its
// disk fills, the study lacks the last second, or the last hundredth of the run, and a later launch goes on
// with it.
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
  // On the rank that writes. resumes: goes on with the study that is there, and with its record of the same
  // point if that reaches first_step; what it holds of later steps is done again. Otherwise the steps get a
  // record of their own. A finding of the watchdog, which must outlive it, is recorded. UsageError.
  RunStudy(const std::string& path, const Environment& environment, const Point& point, int64_t first_step,
           bool resumes, Watchdog& watchdog);
  ~RunStudy();
  RunStudy(const RunStudy&) = delete;
  RunStudy& operator=(const RunStudy&) = delete;

  const Record& record() const { return record_; }  // as it begins, without samples
  const Curves& before() const { return before_; }  // up to first_step

  // Writes what the curves have gained, where the last time is long ago.
  void follow(const Curves& curves);
  // At once, and durably: a checkpoint is about to be written from which the run may go on.
  void secure(const Curves& curves);
  void end(const Record& record);  // whole; publishes the study

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
