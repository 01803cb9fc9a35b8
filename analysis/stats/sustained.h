// Sustained runs, which go on for hours: step time over time, ranks that are or became slow, and what
// throttled the devices. Rules and thresholds: analysis/README.md.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/frame/merged.h"
#include "base/trend.h"

namespace shardmark {

// A rank, or all ranks of a node, that takes longer than the others for the same computing.
struct SlowSpell {
  int64_t rank = -1;                // of a node: -1
  std::string host;                 // "" where the study does not say
  double excess = 0;                // while it is slow: time / median of the others - 1
  double share = 0;                 // of all intervals, those in which it is slow
  double since_s = 0, until_s = 0;  // since the run began; the whole run where nothing changed
};

struct Throttling {
  std::string reason;      // "heat", "power cap" ...
  bool is_fault = false;   // a power cap is how GPUs are run
  double share = 0;        // of the time of all ranks
  int64_t worst_rank = 0;  // and its share
  double worst_share = 0;
  double since_s = 0;     // end of the first interval in which any rank had it
  int64_t num_ranks = 0;  // that ever had it
};

// Medians over the ranks of a series, in the first and in the last tenth of a run.
struct FirstLast {
  double first = Measures::kNone, last = Measures::kNone;
};

struct Sustained {
  const MergedPoint* about;
  const Record* record;
  const Environment* environment;
  std::vector<double> ends_s;  // of the intervals
  FirstLast step_s = {};
  std::optional<Interval> change = {};  // 95 %, of last / first - 1
  std::optional<Trend> drift = {};      // relative, per hour
  bool is_drift = false;                // beyond noise and worth a word
  double throttled = Measures::kNone;
  std::vector<Throttling> reasons = {};  // the largest share first
  FirstLast clock_mhz = {}, temperature_c = {}, power_w = {};
  std::vector<SlowSpell> slow = {};

  // "", or what ended it too early: "timed_out"; "not yet" where its job goes on, or was stopped.
  std::string unfinished = {};

  double duration_s() const { return ends_s.back(); }
  double change_ratio() const { return step_s.last / step_s.first - 1; }
};

// One for each repeat that was a sustained run. They point into `points`.
std::vector<Sustained> sustained_runs(const std::vector<MergedPoint>& points);

// Sustained runs that did not come to their end, or not yet, with the intervals that they got to: no results
// of their point, but evidence of what ended them.
std::vector<MergedPoint> unfinished_runs(const std::vector<StudyData>& studies);

// Its findings: kind and words. Nothing where it went on as it began.
std::vector<std::pair<std::string, std::string>> words_of(const Sustained& run);
std::string words_of(const SlowSpell& spell, double duration_s);  // "12 % slower since 1 h 10 min"

std::string duration_text(double seconds);  // "45 s", "12 min", "1 h 10 min"

// Which ranks compute longer than the others, and since when. compute: [rank][interval], the time of the same
// work; ends_s: of the intervals; hosts: of the ranks, or empty.
std::vector<SlowSpell> slow_spells(const std::vector<std::vector<double>>& compute,
                                   const std::vector<double>& ends_s, const std::vector<std::string>& hosts);

}  // namespace shardmark
