// The rows of a comparison: every point with its numbers, those that changed, those that one side lacks, and
// what differs in the environments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/compare/tables.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr std::array<std::string_view, 4> kBasisNames = {"ranks", "spread", "reference", ""};

// Launches that allow a change by this factor in either direction tell nothing; people then read a word in
// place of digits that look like knowledge.
constexpr double kAnything = 10;

auto interval_of(double Interval::*end) {
  return [end](const ComparedPoint& compared) {
    const Interval& interval = compared.comparison.interval;
    Cell cell = signed_percent(interval.*end);
    if (1 + interval.low <= 1 / kAnything && 1 + interval.high >= kAnything) cell.text = "any";
    return cell;
  };
}

Cell verdict_cell(const ComparedPoint& compared) {
  return cells::words(std::string(to_text(compared.comparison.verdict)));
}

Cell change_cell(const ComparedPoint& compared) { return signed_percent(compared.comparison.difference); }

Cell could_show(const ComparedPoint& compared) {
  Cell cell = cells::percent(compared.smallest);
  if (1 + compared.smallest >= kAnything) cell.text = "nothing";
  return cell;
}

constexpr const char* kStep =
    "median over launches; for one launch, the median over its steps of the slowest rank's time.";
constexpr const char* kInterval =
    "95 % interval of the change. any: from a tenth to ten times or wider, so the launches are inconclusive.";

ColumnsOf<ComparedPoint> change_columns(const std::string& unit, double unit_s) {
  return {{{"before", unit, true, false, "step time"},
           [=](const auto& compared) { return cells::number(compared.comparison.old_s / unit_s); },
           kStep},
          {{"after", unit, true, false, "step time"},
           [=](const auto& compared) { return cells::number(compared.comparison.new_s / unit_s); },
           kStep},
          {{"change", "%"},
           change_cell,
           "after / before - 1, of the medians. The verdict follows the interval. If launches have two "
           "speeds, the two can have different signs."},
          {{"low", "%", true, true}, interval_of(&Interval::low), kInterval},
          {{"high", "%", true, true}, interval_of(&Interval::high), kInterval},
          {{"verdict", "", false}, verdict_cell}};
}

ColumnsOf<ComparedPoint> evidence_columns() {
  return {
      {{"p", "", true, true},
       [](const auto& compared) { return cells::number(compared.comparison.p, 2); },
       "probability of such a difference by chance alone, corrected for the number of points (Holm, Scand. "
       "J. Statist. 6(2), 1979)."},
      {{"spread", "%", true, true},
       [](const auto& compared) { return cells::percent(compared.comparison.spread); },
       "standard deviation of the logarithm of a launch's time."},
      {{"detectable", "%", true, true},
       could_show,
       "the slow-down that these launches would have called SLOWER with 80 % power, given the margin; a "
       "smaller one may go unnoticed. nothing: not even a tenfold one."},
      {{"before", "", true, true, "launches"},
       [](const auto& compared) { return cells::count(static_cast<int64_t>(compared.comparison.num_old)); }},
      {{"after", "", true, true, "launches"},
       [](const auto& compared) { return cells::count(static_cast<int64_t>(compared.comparison.num_new)); }},
      {{"test", "", false, true},
       [](const auto& compared) {
         return cells::words(std::string(kBasisNames.at(static_cast<size_t>(compared.comparison.basis))));
       },
       "ranks (Mann-Whitney test over launches); spread (Student's t-test, where launches are too few for a "
       "rank test); reference (limits in the baseline, no test)."}};
}

ColumnOf<ComparedPoint> tokens_column() {
  return {{.name = "tokens/s", .is_optional = true},
          [](const auto& compared) {
            const Throughput speed = throughput_of(*compared.point);
            const double tokens = speed.is_of_tokens() ? speed.per_sample() : Measures::kNone;
            return cells::number(tokens * static_cast<double>(compared.point->point.global_batch()) /
                                 compared.comparison.new_s);
          },
          "the tokens of a step / the step time after."};
}

Table training_table(const std::vector<MergedPoint>& all, const std::vector<ComparedPoint>& points) {
  std::vector<const ComparedPoint*> rows;
  for (const ComparedPoint& compared : points)
    if (is_training(*compared.point)) rows.push_back(&compared);
  const TrainingColumns labels(all);
  Table table = make_table("compared_training", "Training points",
                           join(via(&ComparedPoint::point, labels.columns()), change_columns("ms", 1e-3),
                                ColumnsOf<ComparedPoint>{tokens_column()}, evidence_columns()),
                           rows);
  for (const std::string& note : labels.warning_notes()) table.notes.push_back(note);
  return table;
}

ColumnsOf<MergedPoint> collective_columns() {
  const auto words_of = [](std::string CollectivePoint::*member) {
    return [=](const MergedPoint& merged) { return cells::words(merged.point.collective.*member); };
  };
  return {{{"machine", "", false, true, "", Starts::section},
           [](const auto& merged) { return cells::words(merged.machine); }},
          {choice_column("transport", true, Starts::section),
           [](const auto& merged) { return transport_cell(merged.transport); }},
          {{"operation", "", false, true, "", Starts::section}, words_of(&CollectivePoint::operation)},
          {{"ranks", "", true, true, "", Starts::section},
           [](const auto& merged) { return cells::count(merged.point.ranks); }},
          {{"type", "", false, true}, words_of(&CollectivePoint::dtype)},
          {{"redop", "", false, true}, words_of(&CollectivePoint::reduction)},
          {{"in place", "", false, true},
           [](const auto& merged) { return cells::yes_no(merged.point.collective.in_place); }},
          {{"seed", "", true, true}, [](const auto& merged) { return cells::count(merged.point.seed); }},
          {{"size", "B"}, [](const auto& merged) { return cells::count(merged.point.collective.bytes); }}};
}

Table collectives_table(const std::vector<ComparedPoint>& points) {
  std::vector<const ComparedPoint*> rows;
  for (const ComparedPoint& compared : points)
    if (!is_training(*compared.point)) rows.push_back(&compared);
  return make_table(
      "compared_collectives", "Collectives",
      join(via(&ComparedPoint::point, collective_columns()), change_columns("us", 1e-6), evidence_columns()),
      rows);
}

// What a side says of a point.
std::string state_of(const Launches& side, const std::string& content) {
  const auto found = side.points.find(content);
  if (found == side.points.end()) return "not in it";
  return found->second.step_s.empty() ? found->second.missing : "measured";
}

struct TwoSides {
  std::string what, before, after;
};

ColumnsOf<TwoSides> side_columns() {
  return {{{"before", "", false}, [](const auto& row) { return cells::words(row.before); }},
          {{"after", "", false}, [](const auto& row) { return cells::words(row.after); }}};
}

}  // namespace

Cell signed_percent(double ratio) {
  if (!std::isfinite(ratio)) return cells::words("");
  if (std::abs(ratio) >= kAnything)
    return {(ratio > 0 ? "+" : "") + format_number(100 * ratio, 4), 100 * ratio};
  return {fmt::format("{:+.1f}", ratio * 100), ratio * 100};
}

std::vector<Table> compared_tables(const std::vector<MergedPoint>& all,
                                   const std::vector<ComparedPoint>& points) {
  Table training = training_table(all, points), collectives = collectives_table(points);
  if (!training.rows.empty()) collectives.notes.clear();  // they stand below the other
  return {std::move(training), std::move(collectives)};
}

// SLOWER fails, a lost time is an error, AMBIGUOUS is skipped.
std::vector<JUnitCase> compared_cases(const std::vector<ComparedPoint>& points, const Launches& before,
                                      const Launches& after) {
  using Outcome = JUnitCase::Outcome;
  std::vector<JUnitCase> cases;
  for (const ComparedPoint& compared : points) {
    const Comparison& c = compared.comparison;
    const Outcome outcome = c.verdict == Judgement::slower      ? Outcome::failed
                            : c.verdict == Judgement::ambiguous ? Outcome::skipped
                                                                : Outcome::passed;
    cases.push_back({after.points.at(content_id(compared.point->point)).name, outcome,
                     fmt::format("{}: {} before, {} after, {} %, 95 % interval {} to {} %",
                                 to_text(c.verdict), format_seconds(c.old_s), format_seconds(c.new_s),
                                 change_cell(compared).text, interval_of(&Interval::low)(compared).text,
                                 interval_of(&Interval::high)(compared).text)});
  }
  for (const auto& [content, was] : before.points)
    if (is_lost(was, content, after))
      cases.push_back({was.name, Outcome::error, "no time any more: " + after.points.at(content).missing});
  return cases;
}

Table changed_table(const std::vector<ComparedPoint>& points, const Launches& after) {
  std::vector<const ComparedPoint*> changed;
  for (const ComparedPoint& point : points)
    if (point.comparison.verdict == Judgement::slower || point.comparison.verdict == Judgement::faster)
      changed.push_back(&point);
  std::stable_sort(changed.begin(), changed.end(), [](const ComparedPoint* a, const ComparedPoint* b) {
    return a->comparison.difference > b->comparison.difference;
  });
  const ColumnsOf<ComparedPoint> columns = {
      {{"verdict", "", false}, verdict_cell},
      {{"change", "%"}, change_cell},
      {{"low", "%"}, interval_of(&Interval::low)},
      {{"high", "%"}, interval_of(&Interval::high)},
      {{"point", "", false},
       [&](const auto& row) { return cells::words(after.points.at(content_id(row.point->point)).name); }}};
  return make_table("changed", "Points that changed, largest change first", columns, changed);
}

// Points with a time on one side alone: they are new, gone, or failed on the other side. Points without a
// time on both sides are left out.
Table one_sided_table(const Launches& before, const Launches& after) {
  std::map<std::string, std::string> names;  // by content
  for (const Launches* side : {&before, &after})
    for (const auto& [content, point] : side->points) names[content] = point.name;
  std::vector<TwoSides> rows;
  for (const auto& [content, name] : names) {
    const std::string was = state_of(before, content), is = state_of(after, content);
    if (was != is && (was == "measured" || is == "measured")) rows.push_back({name, was, is});
  }
  const ColumnsOf<TwoSides> point = {
      {{"point", "", false}, [](const auto& row) { return cells::words(row.what); }}};
  return make_table("one_sided", "Points measured on one side only", join(side_columns(), point), rows);
}

Table environment_table(const Launches& before, const Launches& after) {
  std::set<std::string> names;
  for (const Launches* side : {&before, &after})
    for (const auto& [name, values] : side->environment) names.insert(name);
  const auto values = [](const Launches& side, const std::string& name) {
    const auto found = side.environment.find(name);
    return found == side.environment.end() ? "" : fmt::format("{}", fmt::join(found->second, "; "));
  };
  std::vector<TwoSides> rows;
  for (const std::string& name : names)
    if (const std::string was = values(before, name), is = values(after, name); was != is)
      rows.push_back({name, was, is});
  const ColumnsOf<TwoSides> what = {
      {{"what", "", false}, [](const auto& row) { return cells::words(row.what); }}};
  return make_table("environment", "What differs between the environments", join(what, side_columns()), rows);
}

}  // namespace shardmark
