// Matches the points of two sides and counts the verdicts.
#include "analysis/compare/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace shardmark {
namespace {

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
  // All points are tested together, so that the correction for their number covers all of them.
  const std::vector<Comparison> comparisons = compare_launches(pairs, margin);
  const std::vector<double> smallest = smallest_slowdowns(pairs, margin);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].comparison = comparisons[i];
    points[i].smallest = smallest[i];
  }
  return points;
}

// " (transport nccl before, nccl(graph=true) after)": what alone may be why no point has its like.
std::string what_differs(const Launches& before, const Launches& after) {
  const auto texts_of = [](const Launches& launches, const std::string& fact) {
    const auto found = launches.environment.find(fact);
    return found == launches.environment.end() ? "" : fmt::format("{}", fmt::join(found->second, ", "));
  };
  std::vector<std::string> parts;
  for (const char* fact : {"transport", "times"})
    if (const std::string was = texts_of(before, fact), is = texts_of(after, fact); was != is)
      parts.push_back(fmt::format("{} {} before, {} after", fact, was, is));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; "));
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
    throw UsageError(fmt::format(
        "nothing to compare: no point has a step time on both sides{}; points are matched by everything "
        "that defines them (model, data, strategy, ranks, batch, seed ...): run the same suite, and see "
        "shardmark report",
        what_differs(before, after)));
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
