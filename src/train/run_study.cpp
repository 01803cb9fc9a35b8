// Opens the study, finds the record to continue, and decides when curves are written.
#include "train/run_study.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/utc.h"
#include "schema/file.h"
#include "schema/journal.h"
#include "sweep/environment.h"

namespace shardmark {
namespace {

// What a kill may cost: a second, or this fraction of the run so far. The fraction bounds the number of lines
// in the journal.
constexpr double kLeastSeconds = 1, kInterval = 0.01;

void require_runs(const std::string& path, const StudyData& study) {
  const auto is_run = [](const Record& record) { return record.point.workload == "train"; };
  if (!std::all_of(study.records.begin(), study.records.end(), is_run) ||
      (study.under_way && !is_run(*study.under_way)))
    throw UsageError(
        path + " holds points of a sweep, and no training run goes on with those; choose another output");
}

}  // namespace

RunStudy::RunStudy(const std::string& path, const Environment& environment, const Point& point,
                   int64_t first_step, bool resumes, Watchdog& watchdog)
    : path_(follow_links(path)), begin_s_(now_s()), last_s_(begin_s_), watchdog_(watchdog) {
  record_.point = point;
  record_.id = point_id(point);
  record_.started = utc_now();
  before_.first_step = first_step;
  if (resumes && (has_journal(path_) || file_exists(path_))) take_over(first_step);
  record_.measures.first_step = before_.first_step;
  const DueRule is_due = [&](const std::string& id, const Known&) { return id == record_.id; };
  study_.emplace(resumes ? Study::resume(path, environment, is_due, GoesOn::anywhere)
                         : Study::create(path, environment));
  writer_.emplace(&*study_);
  writer_->begin(record_);
  extend(before_, /*durable=*/true);
  watchdog_.on_finding([this](const std::string& reason) { writer_->time_out(reason); });
}

RunStudy::~RunStudy() { watchdog_.on_finding({}); }

// Sets the record's id, and takes over the curves that the study already holds. If the record of this
// configuration does not reach first_step, the run starts a record of its own, with the next repeat number:
// the steps before it are unknown then.
void RunStudy::take_over(int64_t first_step) {
  StudyData study = read_study(path_);
  require_runs(path_, study);
  if (study.under_way) {  // the job was killed before it wrote a record
    Study::record_crash(path_, Outcome::failed, "its job ended without a word");
    study = read_study(path_);
  }
  for (;; ++record_.point.repeat) {
    record_.id = point_id(record_.point);
    const auto found = std::find_if(study.records.begin(), study.records.end(),
                                    [&](const Record& record) { return record.id == record_.id; });
    if (found == study.records.end()) return;
    if (auto curves = Curves::of(*found, first_step)) {
      record_.attempts = found->attempts + 1;
      before_ = std::move(*curves);
      return;
    }
  }
}

void RunStudy::follow(const Curves& curves) {
  const double now = now_s();
  if (now - last_s_ < std::max(kLeastSeconds, kInterval * (now - begin_s_))) return;
  last_s_ = now;
  extend(curves, /*durable=*/false);
}

void RunStudy::secure(const Curves& curves) { extend(curves, /*durable=*/true); }

void RunStudy::extend(const Curves& curves, bool durable) {
  const auto columns = curves.series(written_);
  if (columns.empty() || !writer_->extend(columns, durable)) return;  // then they are written next time
  written_ = curves.sizes();
}

void RunStudy::end(const Record& record) {
  writer_->end(record);
  study_->publish();
}

}  // namespace shardmark
