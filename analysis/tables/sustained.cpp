// Sustained runs: times, devices, ranks.
#include "analysis/stats/sustained.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

constexpr double kLeastForHours = 600;  // seconds

Cell minutes(double seconds) { return cells::number(seconds / 60, 3); }

Cell exact_percent(double ratio) { return cells::percent(ratio, 2); }

auto change_of(double Interval::*end) {
  return [end](const Sustained& run) {
    return exact_percent(run.change ? (*run.change).*end : Measures::kNone);
  };
}

// A slope is given per hour. A run of a few minutes would be extended by far more than it lasted, so it has
// none.
template <class Number>
auto per_hour(Number number) {
  return [number](const Sustained& run) {
    const bool tells_hours = run.drift.has_value() && run.duration_s() >= kLeastForHours;
    return exact_percent(tells_hours ? number(*run.drift) : Measures::kNone);
  };
}

constexpr const char* kFirstLast =
    "median over the first (last) tenth of the intervals of the median over the ranks of each interval's "
    "median step.";
constexpr const char* kChangeInterval =
    "95 % interval, from the inverted Mann-Whitney test (Hollander and Wolfe, 4.3).";
constexpr const char* kSlope =
    "median of the slopes of all pairs of intervals, with its 95 % interval (Theil 1950; Sen, JASA 63, "
    "1968). Not given for runs under 10 minutes.";

ColumnsOf<Sustained> change_columns() {
  return {
      {{"duration", "min"}, [](const auto& run) { return minutes(run.duration_s()); }},
      {{"intervals", ""}, [](const auto& run) { return cells::count(std::ssize(run.ends_s)); }},
      {{"first", "ms"}, [](const auto& run) { return cells::milliseconds(run.step_s.first); }, kFirstLast},
      {{"last", "ms"}, [](const auto& run) { return cells::milliseconds(run.step_s.last); }, kFirstLast},
      {{"of last to first", "%", true, false, "change"},
       [](const auto& run) { return exact_percent(run.change_ratio()); },
       "last / first - 1."},
      {{"low", "%", true, true, "change"}, change_of(&Interval::low), kChangeInterval},
      {{"high", "%", true, true, "change"}, change_of(&Interval::high), kChangeInterval}};
}

ColumnsOf<Sustained> trend_columns() {
  return {
      {{"ended", "", false, true},
       [](const auto& run) { return cells::words(run.unfinished); },
       "what ended a run early (not yet: it is still running, or was stopped); such a run appears only in "
       "the tables of sustained runs and in problems."},
      {{"slope", "%", true, true, "per hour"}, per_hour([](const Trend& t) { return t.slope; }), kSlope},
      {{"low", "%", true, true, "per hour"}, per_hour([](const Trend& t) { return t.interval.low; }), kSlope},
      {{"high", "%", true, true, "per hour"},
       per_hour([](const Trend& t) { return t.interval.high; }),
       kSlope},
      {{"p", "", true, true},
       [](const auto& run) { return cells::number(run.drift ? run.drift->p : Measures::kNone, 2); },
       "p-value of no trend, corrected for autocorrelation (Mann, Econometrica 13, 1945)."},
      {{"slow", ""},
       [](const auto& run) { return cells::count(std::ssize(run.slow)); },
       "number of slow ranks or nodes, which have a table of their own: sustained.ranks."},
      {{"throttled", "%", true, true},
       [](const auto& run) { return cells::percent(run.throttled); },
       "share of the ranks' time in which a power cap, heat, a power brake or the hardware held the clock "
       "down, where the devices report it (NVML)."}};
}

std::string held_down_by(const Sustained& run) {
  std::string why;
  for (const Throttling& found : run.reasons)
    why += fmt::format("{}{} {:.1f} %", why.empty() ? "" : ", ", found.reason, 100 * found.share);
  return why;
}

bool has_devices(const Sustained& run) {
  for (const FirstLast& pair : {run.clock_mhz, run.temperature_c, run.power_w})
    if (!std::isnan(pair.first)) return true;
  return !run.reasons.empty();
}

ColumnsOf<Sustained> device_columns(const char* name, const char* unit, FirstLast Sustained::*pair) {
  constexpr const char* kMedians =
      "median over the ranks in the first or in the last tenth of the intervals.";
  return {{{"first", unit, true, true, name},
           [pair](const auto& run) { return cells::number((run.*pair).first); },
           kMedians},
          {{"last", unit, true, true, name},
           [pair](const auto& run) { return cells::number((run.*pair).last); },
           kMedians}};
}

Table devices_table(const std::vector<Sustained>& runs) {
  std::vector<const Sustained*> rows;
  for (const Sustained& run : runs)
    if (has_devices(run)) rows.push_back(&run);
  const ColumnsOf<Sustained> why = {{{"held down by", "", false, true},
                                     [](const auto& run) { return cells::words(held_down_by(run)); },
                                     "why the clock was reduced, with the share of the ranks' time."}};
  return make_table(
      "sustained.devices", "Sustained runs: device readings",
      join(via(&Sustained::about, about_columns()), device_columns("clock", "MHz", &Sustained::clock_mhz),
           device_columns("temperature", "C", &Sustained::temperature_c),
           device_columns("power", "W", &Sustained::power_w), why),
      rows);
}

struct SlowRow {
  const MergedPoint* about;
  const SlowSpell* spell;
};

ColumnsOf<SlowRow> spell_columns() {
  return {{{"rank", "", false},
           [](const auto& row) {
             return cells::words(row.spell->rank < 0 ? "all" : std::to_string(row.spell->rank));
           }},
          {{"node", "", false, true}, [](const auto& row) { return cells::words(row.spell->host); }},
          {{"excess", "%"},
           [](const auto& row) { return cells::percent(row.spell->excess); },
           "of its forward and backward time (the same computing on every rank) over the median of the other "
           "ranks; the median while it is slow."},
          {{"since", "min"}, [](const auto& row) { return minutes(row.spell->since_s); }},
          {{"until", "min"}, [](const auto& row) { return minutes(row.spell->until_s); }},
          {{"intervals", "%"},
           [](const auto& row) { return cells::percent(row.spell->share, 0); },
           "share in which it took over 5 % longer."}};
}

Table ranks_table(const std::vector<Sustained>& runs) {
  std::vector<SlowRow> rows;
  for (const Sustained& run : runs)
    for (const SlowSpell& spell : run.slow) rows.push_back({run.about, &spell});
  return make_table("sustained.ranks", "Sustained runs: ranks and nodes that are slow",
                    join(via(&SlowRow::about, about_columns()), spell_columns()), rows);
}

}  // namespace

std::vector<Table> sustained_tables(const MergedPoints& points, const MergedPoints& unfinished) {
  std::vector<Sustained> runs = sustained_runs(points);
  for (Sustained& run : sustained_runs(unfinished)) runs.push_back(std::move(run));
  return {make_table("sustained", "Sustained runs: step time from the first to the last tenth",
                     join(via(&Sustained::about, about_columns()), change_columns(), trend_columns()), runs),
          devices_table(runs), ranks_table(runs)};
}

}  // namespace shardmark
