// Rounds of a sweep; see Note [Rounds].
#include "launch/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "launch/obituary.h"
#include "launch/process.h"
#include "laws/short_text.h"
#include "schema/journal.h"

namespace shardmark {
namespace {

constexpr int kMostDeaths = 6;  // rounds in a row without a finished point
// From the first sign of a death, or from a complete study, to the launcher's end. mpirun waits for the
// daemon of a lost node until TCP gives it up, a quarter of an hour, and for a rank that was stopped forever.
constexpr double kPatienceS = 20;
constexpr double kStartS = 600;  // until the ranks have opened the study

// What the journal of the study holds; all zeroes where there is none.
struct Count {
  int64_t num_records = 0;
  std::set<std::string> over;  // points whose last attempt did not end the job
  std::optional<Record> latest;
  int64_t num_finished() const { return static_cast<int64_t>(over.size()); }
};

Count count(const std::string& study) {
  Count count;
  const std::string path = follow_links(study);
  if (!file_exists(journal_path(path))) return count;
  scan_journal(path, Load::without_samples, [&](Record&& record) {
    ++count.num_records;
    if (!record.ended_job) count.over.insert(record.id);
    count.latest = std::move(record);
  });
  return count;
}

// Has the study been opened by this round's ranks? They change its journal first of all.
class Opening {
 public:
  explicit Opening(const std::string& study)
      : journal_(journal_path(follow_links(study))), before_(stamp()) {}
  bool seen() {
    seen_ = seen_ || stamp() != before_;
    return seen_;
  }

 private:
  std::filesystem::file_time_type stamp() const {
    std::error_code absent;
    return std::filesystem::last_write_time(journal_, absent);
  }
  std::string journal_;
  std::filesystem::file_time_type before_;
  bool seen_ = false;
};

class Rounds {
 public:
  explicit Rounds(const Sweep& sweep) : sweep_(sweep), resume_(sweep.resume) {}

  SweepEnd run() {
    const int64_t at_start = count(sweep_.study).num_finished();
    SweepEnd result;
    bool is_second_start = false;
    for (int deaths = 0;;) {
      const Count before = count(sweep_.study);
      const Obituary ending = round(result);
      if (result.stopped_by != 0 || result.status == kDone || result.status == kUsage) break;
      if (result.status == kWrong && is_complete()) break;  // else it is a library's way of giving up
      const Count after = bury(ending, before);
      if (after.num_records == before.num_records) {  // no point can be blamed
        const bool was_struck = ending.was_killed || ending.outcome == Outcome::timed_out;
        const bool goes_on = was_struck && !is_second_start;
        log_line(fmt::format("{}; no point was running, so it is {}", ending.reason,
                             goes_on ? "started once more" : "not tried again"));
        if (!goes_on) break;
        is_second_start = resume_ = true;
        continue;
      }
      is_second_start = false;
      deaths = after.num_finished() > before.num_finished() ? 1 : deaths + 1;
      if (deaths >= kMostDeaths) {
        log_line(
            fmt::format("{} jobs in a row ended without finishing a point: that is the machine rather than "
                        "the points; see shardmark doctor, then go on with --resume",
                        deaths));
        break;
      }
      resume_ = true;
    }
    // A sweep that came to its end has no journal any more, and nobody asks.
    result.num_finished = std::max<int64_t>(count(sweep_.study).num_finished() - at_start, 0);
    return result;
  }

 private:
  bool is_complete() const {
    const std::string path = follow_links(sweep_.study);
    return file_exists(path) && !file_exists(journal_path(path));
  }

  // As its ranks would have ended.
  int status_of_complete() const {
    const auto records = read_study(sweep_.study, Load::without_samples).records;
    return std::any_of(records.begin(), records.end(), [](const Record& r) { return is_bad(r.outcome); })
               ? kWrong
               : kDone;
  }

  Obituary round(SweepEnd& result) {
    std::vector<std::string> arguments = sweep_.command.arguments;
    arguments.insert(arguments.end(), sweep_.run.begin(), sweep_.run.end());
    if (resume_) arguments.emplace_back("--resume");
    LauncherVoice voice([](const std::string& line) { fmt::print(stderr, "{}\n", line); });
    Opening opening(sweep_.study);
    const double begin_s = now_s();
    const int64_t kills_before = count_oom_kills();
    double over_s = 0;  // when the job was seen to be over, all but its launcher
    const auto has_lost_patience = [&] {
      if (over_s == 0 && (voice.has_signs_of_death() || (opening.seen() && is_complete()))) over_s = now_s();
      if (over_s != 0) return now_s() - over_s > kPatienceS;
      return !opening.seen() && now_s() - begin_s > kStartS;
    };
    const SupervisedEnd end =
        supervise(arguments, sweep_.command.environment,
                  {[&](const std::string& line) { voice.take(line); }, has_lost_patience});
    voice.finish();
    result.status = end.gave_up ? static_cast<int>(kTimedOut) : end.status;
    result.stopped_by = end.stopped_by;
    if ((end.stopped_by != 0 || end.gave_up) && is_complete()) {  // when all was done
      if (end.gave_up) log_line("the study is complete, but its job did not end; ended it");
      result.stopped_by = 0;
      result.status = status_of_complete();
    }
    return obituary(voice, end, count_oom_kills() - kills_before);
  }

  // Gives the point that was running its outcome, unless the watchdog has; tells the user.
  Count bury(const Obituary& ending, const Count& before) const {
    Study::bury(sweep_.study, ending.outcome, ending.reason);
    Count after = count(sweep_.study);
    if (after.num_records == before.num_records) return after;
    const Record& latest = *after.latest;
    if (latest.ended_job)
      log_line(fmt::format("{}: {}: {}; {}", laws::short_text(latest.point), to_text(latest.outcome),
                           latest.reason,
                           latest.attempts < Known::kMostAttempts ? "it is tried once more"
                                                                  : "for the second time, so that stands"));
    else
      log_line(ending.reason + ", while no point was running; going on");
    return after;
  }

  const Sweep& sweep_;
  bool resume_;
};

}  // namespace

SweepEnd run_rounds(const Sweep& sweep) { return Rounds(sweep).run(); }

}  // namespace shardmark
