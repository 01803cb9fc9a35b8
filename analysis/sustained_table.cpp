// Sustained runs: times, devices, ranks.
#include <fmt/format.h>

#include "analysis/about.h"
#include "analysis/cells.h"
#include "analysis/sustained.h"
#include "analysis/tables.h"

namespace shardmark {
namespace {

constexpr double kLeastForHours = 600;  // seconds: what a shorter run would do in an hour is a guess

Cell minutes(double seconds) { return cells::number(seconds / 60, 3); }

Table times_table(const std::vector<Sustained>& runs) {
  Table table{
      "sustained",
      "Sustained runs: step time from the first to the last tenth",
      {"Median over the ranks of each interval's median step; change: the last tenth of the intervals "
       "against the first, with its 95 % interval.",
       "per hour: slope over all intervals (Theil and Sen) with its 95 % interval; p: of no trend "
       "(Mann and Kendall), with neighbours that resemble each other allowed for. Not told of runs "
       "under 10 minutes.",
       "ended: what ended a run before its time (not yet: it goes on, or was stopped); it counts nowhere "
       "else.",
       "slow: ranks or nodes, in a table of their own where there are any. throttled: share of the ranks' "
       "time, where the devices tell."},
      concat<Column>({about_columns(),
                      {{"duration", "min"},
                       {"intervals", ""},
                       {"first", "ms"},
                       {"last", "ms"},
                       {"of last to first", "%", true, false, "change"},
                       {"low", "%", true, true, "change"},
                       {"high", "%", true, true, "change"}},
                      {{"ended", "", false, true}},
                      {{"slope", "%", true, true, "per hour"},
                       {"low", "%", true, true, "per hour"},
                       {"high", "%", true, true, "per hour"},
                       {"p", "", true, true},
                       {"slow", ""},
                       {"throttled", "%", true, true}}}),
      {}};
  for (const Sustained& run : runs) {
    const auto percent = [](bool is_known, double ratio) {
      return cells::percent(is_known ? ratio : Measures::kNone, 2);
    };
    const Interval change = run.change.value_or(Interval{});
    const Trend drift = run.drift.value_or(Trend{});
    const bool tells_hours = run.drift.has_value() && run.duration_s() >= kLeastForHours;
    table.rows.push_back(concat<Cell>(
        {about_cells(*run.about),
         {minutes(run.duration_s()), cells::count(static_cast<int64_t>(run.ends_s.size())),
          cells::milliseconds(run.step_s.first), cells::milliseconds(run.step_s.last),
          percent(true, run.change_ratio()), percent(run.change.has_value(), change.low),
          percent(run.change.has_value(), change.high)},
         {cells::words(run.unfinished)},
         {percent(tells_hours, drift.slope), percent(tells_hours, drift.interval.low),
          percent(tells_hours, drift.interval.high), cells::number(run.drift ? drift.p : Measures::kNone, 2),
          cells::count(static_cast<int64_t>(run.slow.size())), cells::percent(run.throttled)}}));
  }
  return table;
}

Table devices_table(const std::vector<Sustained>& runs) {
  Table table{
      "sustained_devices",
      "Sustained runs: what the devices said",
      {"Medians over the ranks in the first and in the last tenth of the intervals. held down by: why "
       "the clock was below what it would be, with the share of the ranks' time."},
      concat<Column>({about_columns(),
                      {{"first", "MHz", true, true, "clock"},
                       {"last", "MHz", true, true, "clock"},
                       {"first", "C", true, true, "temperature"},
                       {"last", "C", true, true, "temperature"},
                       {"first", "W", true, true, "power"},
                       {"last", "W", true, true, "power"},
                       {"held down by", "", false, true}}}),
      {}};
  for (const Sustained& run : runs) {
    std::vector<Cell> said;
    bool any = false;
    for (const FirstLast& pair : {run.clock_mhz, run.temperature_c, run.power_w}) {
      said.push_back(cells::number(pair.first));
      said.push_back(cells::number(pair.last));
      any |= pair.first == pair.first;  // no NaN
    }
    std::string why;
    for (const Throttling& found : run.reasons)
      why += fmt::format("{}{} {:.1f} %", why.empty() ? "" : ", ", found.reason, 100 * found.share);
    said.push_back(cells::words(why));
    if (any || !why.empty()) table.rows.push_back(concat<Cell>({about_cells(*run.about), said}));
  }
  return table;
}

Table ranks_table(const std::vector<Sustained>& runs) {
  Table table{"sustained_ranks",
              "Sustained runs: ranks and nodes that are slow",
              {"At the same computing, forward and backward, against the median of the others; excess: while "
               "it is slow. intervals: share in which it took over 5 % longer."},
              concat<Column>({about_columns(),
                              {{"rank", "", false},
                               {"node", "", false, true},
                               {"excess", "%"},
                               {"since", "min"},
                               {"until", "min"},
                               {"intervals", "%"}}}),
              {}};
  for (const Sustained& run : runs)
    for (const SlowSpell& spell : run.slow)
      table.rows.push_back(
          concat<Cell>({about_cells(*run.about),
                        {cells::words(spell.rank < 0 ? "all" : std::to_string(spell.rank)),
                         cells::words(spell.host), cells::percent(spell.excess), minutes(spell.since_s),
                         minutes(spell.until_s), cells::percent(spell.share, 0)}}));
  return table;
}

}  // namespace

std::vector<Table> sustained_tables(const MergedPoints& points, const MergedPoints& unfinished) {
  std::vector<Sustained> runs = sustained_runs(points);
  for (Sustained& run : sustained_runs(unfinished)) runs.push_back(std::move(run));
  return {times_table(runs), devices_table(runs), ranks_table(runs)};
}

}  // namespace shardmark
