// Matches the points of two sides and counts the verdicts.
#include "analysis/compare/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "base/error.h"

namespace shardmark {
namespace {

std::string launches_text(size_t count) { return fmt::format("{} launch{}", count, count == 1 ? "" : "es"); }

// Points that both sides measured, in the order of `all`.
std::vector<ComparedPoint> compare_common(const std::vector<MergedPoint>& all, const Launches& before,
                                          const Launches& after, double margin) {
  std::vector<ComparedPoint> points;
  std::vector<LaunchPair> pairs;
  for (const MergedPoint& merged : all) {
    const std::string content = content_id(merged.point);
    const auto was = before.points.find(content), is = after.points.find(content);
    if (was == before.points.end() || was->second.step_s.empty() || is->second.step_s.empty()) continue;
    points.push_back({&merged, {}, 0});
    pairs.push_back({was->second.step_s, is->second.step_s, was->second.reference});
  }
  const std::vector<Comparison> comparisons = compare_launches(pairs, margin);
  const std::vector<double> smallest = smallest_slowdowns(pairs, margin);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].comparison = comparisons[i];
    points[i].smallest = smallest[i];
  }
  return points;
}

// Launches that ran all before the others: what changed in the machine meanwhile looks like a change of the
// program.
bool took_turns(const Launches& before, const Launches& after) {
  const auto span = [](const Launches& side) {
    std::vector<std::string> starts;
    starts.reserve(side.started.size());
    for (const auto& [launch, start] : side.started) starts.push_back(start);
    const auto [first, last] = std::minmax_element(starts.begin(), starts.end());
    return starts.empty() ? std::pair<std::string, std::string>() : std::pair(*first, *last);
  };
  const auto [first_before, last_before] = span(before);
  const auto [first_after, last_after] = span(after);
  if (first_before.empty() || first_after.empty()) return true;  // imported without times: nothing to say
  return first_after < last_before && first_before < last_after;
}

std::vector<std::string> notes(const Launches& before, const Launches& after,
                               const std::vector<ComparedPoint>& points, double margin) {
  std::vector<std::string> notes = {
      fmt::format("SLOWER, FASTER: statistically significant (5 % over all points together), with a 95 % "
                  "interval not within {0:g} %. SAME: the 95 % interval is within {0:g} %. AMBIGUOUS: these "
                  "launches do not decide. --margin changes the "
                  "{0:g} %.",
                  margin * 100)};
  const auto undecidable = std::count_if(points.begin(), points.end(), [](const ComparedPoint& point) {
    return point.comparison.basis == Basis::none;
  });
  if (undecidable > 0)
    notes.push_back(
        fmt::format("{} point{} had fewer than {} launches on both sides: the variation between launches of "
                    "this machine is unknown, so no conclusion is possible. Launch each side {} times or "
                    "more and give all studies: --old "
                    "a1.h5 a2.h5 a3.h5 --new b1.h5 b2.h5 b3.h5.",
                    undecidable, undecidable == 1 ? "" : "s", kLeastLaunches, kLeastLaunches));
  if (!took_turns(before, after))
    notes.emplace_back(
        "All launches of one side ran before those of the other: a change of the machine in between would "
        "look the same. Alternate the launches of the two sides to rule that out.");
  return notes;
}

Table summary_table(const Launches& before, const Launches& after, const std::vector<ComparedPoint>& points,
                    size_t num_lost, double margin) {
  std::array<int64_t, 4> counts = {};
  for (const ComparedPoint& point : points) ++counts[static_cast<size_t>(point.comparison.verdict)];
  ColumnsOf<size_t> columns = {
      {{"points", ""}, [](const auto& all) { return cells::count(static_cast<int64_t>(all)); }}};
  for (size_t verdict = 0; verdict < counts.size(); ++verdict)
    columns.push_back({{std::string(to_text(static_cast<Judgement>(verdict))), ""},
                       [count = counts[verdict]](const auto&) { return cells::count(count); }});
  columns.push_back(
      {{"no longer ok", ""}, [=](const auto&) { return cells::count(static_cast<int64_t>(num_lost)); }});
  Table table =
      make_table("comparison",
                 fmt::format("Comparison of step times: {} before, {} after",
                             launches_text(before.started.size()), launches_text(after.started.size())),
                 columns, std::vector<size_t>{points.size()});
  table.notes = notes(before, after, points, margin);
  return table;
}

}  // namespace

bool is_lost(const LaunchTimes& was, const std::string& content, const Launches& after) {
  const auto is = after.points.find(content);
  return !was.step_s.empty() && is != after.points.end() && is->second.step_s.empty();
}

ComparisonReport compare_sides(const Launches& before, const Launches& after,
                               const std::vector<StudyData>& studies, double margin) {
  const std::vector<MergedPoint> all = merge_repeats(studies);
  const std::vector<ComparedPoint> points = compare_common(all, before, after, margin);
  ComparisonReport report;
  for (const auto& [content, was] : before.points) report.num_lost += is_lost(was, content, after) ? 1 : 0;
  if (points.empty() && report.num_lost == 0)
    throw UsageError(
        "nothing to compare: no point has a step time on both sides; points are matched by everything that "
        "defines them (model, data, strategy, ranks, batch, seed ...): run the same suite, and see shardmark "
        "report");
  for (const ComparedPoint& point : points) {
    report.num_slower += point.comparison.verdict == Judgement::slower ? 1 : 0;
    report.num_ambiguous += point.comparison.verdict == Judgement::ambiguous ? 1 : 0;
  }
  report.tests = {"shardmark compare",
                  {{"machine", after.machine}, {"margin", fmt::format("{:g} %", 100 * margin)}},
                  compared_cases(points, before, after)};
  report.tables = {summary_table(before, after, points, report.num_lost, margin),
                   changed_table(points, after), one_sided_table(before, after),
                   environment_table(before, after)};
  for (Table& table : compared_tables(all, points)) report.tables.push_back(std::move(table));
  std::erase_if(report.tables, [](const Table& table) { return table.rows.empty(); });
  return report;
}

}  // namespace shardmark
