// Starts the ranks of a sweep again after crashes. rounds.h explains the rules: Note [Rounds].
#include "launch/rounds.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "launch/exit_diagnosis.h"
#include "launch/leftovers.h"
#include "launch/process.h"
#include "launch/told.h"
#include "schema/journal.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr int kMostCrashes = 6;  // rounds in a row in which no point was finished
// Seconds that the launcher may go on after the first sign of a crash, or after the study is complete. mpirun
// waits for the daemon of a lost node until TCP gives up, which takes a quarter of an hour, and it waits
// forever for a rank that was stopped.
constexpr double kPatienceS = 20;
// A file system may keep the lock of a lost node for this long.
constexpr int kMostBusyS = 90;

// What the study holds; all zero if there is none.
struct Count {
  int64_t num_records = 0;
  std::map<std::string, std::string> over;  // points that are over: id and time of start
  std::optional<Record> latest;
  int64_t num_finished_since(const Count& before) const {
    return std::count_if(over.begin(), over.end(), [&](const auto& point) {
      const auto then = before.over.find(point.first);
      return then == before.over.end() || then->second != point.second;
    });
  }
};

Count count(const std::string& study) {
  Count count;
  const std::string path = follow_links(study);
  const RecordSink add = [&](Record&& record) {
    ++count.num_records;
    if (!record.ended_job) count.over.insert_or_assign(record.id, record.started);
    count.latest = std::move(record);
  };
  if (has_journal(path)) {
    scan_journal(path, Load::without_samples, add);
  } else if (file_exists(path)) {
    try {
      for (Record& record : read_study(path, Load::without_samples).records) add(std::move(record));
    } catch (const UsageError&) {  // the ranks will report what is wrong
    }
  }
  return count;
}

// Identifies the file at this path and its last change. The file is opened, because a shared file system then
// asks its server.
std::optional<std::array<int64_t, 3>> stamp_of(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!file || ::fstat(file.get(), &info) != 0) return {};
  return {{static_cast<int64_t>(info.st_ino), info.st_mtim.tv_sec, info.st_mtim.tv_nsec}};
}

bool is_complete(const std::string& study) {
  const std::string path = follow_links(study);
  return stamp_of(path) && !stamp_of(journal_path(path));
}

// Whether the ranks of this round have opened the study. They change its journal first and publish it last.
class Opening {
 public:
  explicit Opening(const std::string& study) : study_(follow_links(study)), before_(stamps()) {}
  bool seen() {
    seen_ = seen_ || stamps() != before_;
    return seen_;
  }

 private:
  using Stamp = std::optional<std::array<int64_t, 3>>;
  std::pair<Stamp, Stamp> stamps() const { return {stamp_of(journal_path(study_)), stamp_of(study_)}; }
  std::string study_;
  std::pair<Stamp, Stamp> before_;
  bool seen_ = false;
};

class Rounds {
 public:
  explicit Rounds(const Sweep& sweep)
      : sweep_(sweep), mark_(sweep.temporary), resume_(sweep.resume), rerun_failed_(sweep.rerun_failed) {}

  SweepEnd run() {
    remove_leftovers();
    if (sweep_.waits_for_lock) wait_until_free();
    const Count at_start = count(sweep_.study);
    SweepEnd result;
    bool is_second_start = false;
    for (int crashes = 0;;) {
      // The number of records before and after a round shows whether the crash hit a point. A crashed point
      // gets a record.
      const Count before = count(sweep_.study);
      const RoundEnd end = round();
      result.status = end.status;
      result.stopped_by = end.stopped_by;
      if (!end.start_failure.empty()) {
        log_line("the ranks cannot be started: " + end.start_failure);
        break;
      }
      // No more rounds: the study is complete, a signal came, or the command line is wrong.
      if (end.completed || result.stopped_by != 0 || result.status == kDone || result.status == kUsage) break;
      const ExitDiagnosis& ending = end.diagnosis;
      const Count after = end.opened ? record_crash(ending, before) : before;
      result.stopped_by = signals_.asked();  // a signal may have come since the job ended
      if (result.stopped_by != 0) break;
      if (after.num_records == before.num_records) {  // no point was running, so none can be the cause
        const bool was_struck = ending.was_killed || ending.outcome == Outcome::timed_out;
        const bool goes_on = was_struck && !is_second_start;
        log_line(fmt::format("{}; no point was running, so it is {}", ending.reason,
                             goes_on ? "started once more" : "not tried again"));
        if (!goes_on && !end.opened) result.refused = ending.reason;
        if (!goes_on) break;
        is_second_start = true;
        resume_ = resume_ || end.opened;
        continue;
      }
      is_second_start = false;
      // A point got a record for this crash, so the next round skips it or tries it once more.
      crashes = after.num_finished_since(before) > 0 ? 1 : crashes + 1;
      if (crashes >= kMostCrashes) {
        log_line(
            fmt::format("{} jobs in a row ended without finishing a point: the cause is the machine rather "
                        "than the points; see shardmark doctor, then go on with --resume",
                        crashes));
        break;
      }
      resume_ = true;
    }
    result.num_finished = count(sweep_.study).num_finished_since(at_start);
    return result;
  }

 private:
  struct RoundEnd {
    ExitDiagnosis diagnosis;
    int status = 0, stopped_by = 0;  // as in SweepEnd
    bool opened = false;             // the ranks opened the study
    bool completed = false;          // the ranks completed the study
    std::string start_failure = {};  // why no rank could start
  };

  // The exit status that the ranks of a complete study return.
  int status_of_complete() const {
    const auto records = read_study(sweep_.study, Load::without_samples).records;
    return std::any_of(records.begin(), records.end(), [](const Record& r) { return is_bad(r.outcome); })
               ? kWrong
               : kDone;
  }

  RoundEnd round() {
    std::vector<std::string> arguments = sweep_.command.arguments;
    arguments.insert(arguments.end(), sweep_.run.begin(), sweep_.run.end());
    if (resume_) arguments.emplace_back("--resume");
    if (rerun_failed_) arguments.emplace_back("--rerun-failed");
    StatusLine status;
    LauncherOutput output([&](const std::string& line) {
      status.clear();
      log_raw(line + "\n");
    });
    Opening opening(sweep_.study);
    const double begin_s = now_s();
    const int64_t kills_before = count_oom_kills();
    double over_s = 0;  // when the job was found to be over, except its launcher
    // supervise() asks this about once a second. Two clocks run: from the moment at which the job is found
    // to be over (a rank was lost, or the study is complete) the launcher has kPatienceS to end; and until
    // the study is opened, the ranks have start_limit_s to start.
    const auto has_lost_patience = [&] {
      if (over_s == 0 && (output.is_ending() || (opening.seen() && is_complete(sweep_.study))))
        over_s = now_s();
      if (over_s != 0) return now_s() - over_s > kPatienceS;
      return sweep_.start_limit_s > 0 && !opening.seen() && now_s() - begin_s > sweep_.start_limit_s;
    };
    std::vector<std::pair<std::string, std::string>> environment = sweep_.command.environment;
    environment.emplace_back(kLaunchedVariable, fmt::format("{:.3f}", since_1970_s()));
    SupervisedEnd end = supervise(signals_, arguments, environment,
                                  {[&](const std::string& line) {
                                     if (!line.starts_with('\r')) return output.take(line);
                                     line.size() == 1 ? status.clear() : status.show(line.substr(1));
                                   },
                                   [&](pid_t launcher) { mark_.name(launcher); }, has_lost_patience});
    status.clear();
    output.finish();
    // srun ends the other tasks after the first one that failed, and may return the signal that ended
    // those.
    if (end.status > 128) end.status = output.first_status().value_or(end.status);
    RoundEnd found{diagnose_exit(output, end, count_oom_kills() - kills_before)};
    found.opened = opening.seen();
    rerun_failed_ = rerun_failed_ && !found.opened;  // from then on the journal knows it
    // Ranks that are refused the study have not completed it; another job did that meanwhile.
    found.completed = found.opened && end.status != kUsage && is_complete(sweep_.study);
    found.status = end.gave_up ? static_cast<int>(kTimedOut) : end.status;
    if (!found.opened && end.stopped_by == 0) explain_start(output, found);
    found.stopped_by = found.completed ? 0 : end.stopped_by;
    if (!found.completed || found.status == kDone) return found;
    const int own = status_of_complete();
    if (found.status != own) {  // the launcher returned another status, such as 1
      if (end.stopped_by == 0)
        log_line(end.gave_up ? "the study is complete, but its job did not end; ended it"
                             : "the study is complete; its job then failed: " + found.diagnosis.reason);
      found.status = own;
    }
    return found;
  }

  // For ranks that never opened the study: a program that cannot be started is a usage error. An unknown
  // status of the launcher becomes kSystem, because 1 would mean that something measured was wrong.
  static void explain_start(const LauncherOutput& output, RoundEnd& found) {
    const int status = found.status;
    const bool is_ours = status == kDone || status == kUsage || status == kSystem || status == kTimedOut;
    const bool is_signal = status > 128 && status <= 128 + SIGRTMAX;
    if (status != kDone && !output.start_failure().empty()) {
      found.start_failure = output.start_failure();
      found.status = kUsage;
    } else if (!is_ours && !is_signal) {
      found.status = kSystem;
    }
  }

  // The ranks are gone, but their lock may be released later, by a lost node or a shared file system. Returns
  // false if it stays locked or a signal asks us to end.
  bool wait_until_free() {
    for (int waited_s = 0; Study::is_busy(sweep_.study); ++waited_s) {
      if (waited_s == kMostBusyS || signals_.asked() != 0) return false;
      if (waited_s == 0)
        log_line(fmt::format("{} is still locked by the ranks that ended; waiting for it, {} s at most",
                             sweep_.study, kMostBusyS));
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return true;
  }

  // Gives the point that was running its outcome, unless the watchdog already did, and tells the user.
  Count record_crash(const ExitDiagnosis& ending, const Count& before) {
    try {
      if (wait_until_free())
        Study::record_crash(sweep_.study, ending.outcome, ending.reason);
      else if (signals_.asked() == 0)
        log_line("the lock stays, so no point is blamed");
    } catch (const StudyBusy& busy) {  // another process was faster
      log_line(std::string(busy.what()) + "; no point is blamed");
    }
    Count after = count(sweep_.study);
    if (after.num_records == before.num_records || !after.latest) return after;
    const Record& latest = *after.latest;
    if (latest.ended_job)
      log_line(fmt::format("{}: {}: {}; {}", brief_text(latest.point), to_text(latest.outcome), latest.reason,
                           latest.attempts < Known::kMostAttempts
                               ? "it is tried once more"
                               : "for the second time, so this outcome is final"));
    else
      log_line(ending.reason + ", while no point was running; going on");
    return after;
  }

  const Sweep& sweep_;
  LauncherMark mark_;
  Signals signals_;  // for all rounds, so that no signal is lost between two
  bool resume_, rerun_failed_;
};

}  // namespace

SweepEnd run_rounds(const Sweep& sweep) { return Rounds(sweep).run(); }

}  // namespace shardmark
