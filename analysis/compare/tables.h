// What shardmark compare prints.
#pragma once

#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/render/junit.h"
#include "analysis/stats/compare.h"
#include "analysis/table/table.h"

namespace shardmark {

struct ComparisonReport {
  std::vector<Table> tables;  // without empty ones
  size_t num_slower = 0;
  size_t num_lost = 0;  // points that were measured before, were run again, and gave no time
  size_t num_ambiguous = 0;
  JUnitSuite tests;  // a case for each point that both sides measured, or that was lost
};

// `after` is launches_of(studies). UsageError: the two sides have no point in common.
ComparisonReport compare_sides(const Launches& before, const Launches& after,
                               const std::vector<StudyData>& studies, double margin);

// The parts: rows of points that both sides measured, and of those that one side lacks; what the studies'
// environments differ in.
struct ComparedPoint {
  const MergedPoint* point;
  Comparison comparison;
  double smallest;  // smallest_slowdowns
};
Cell signed_percent(double ratio);  // "+12.5" of 0.125
// One row of all points; where there are both kinds, also one of training and one of collectives.
Table summary_table(const Launches& before, const Launches& after, const std::vector<ComparedPoint>& points,
                    size_t num_lost, double margin);
std::vector<Table> compared_tables(const std::vector<MergedPoint>& all,
                                   const std::vector<ComparedPoint>& points);
// Whether a point that had a time has none any more.
bool is_lost(const LaunchTimes& was, const std::string& content, const Launches& after);
std::vector<JUnitCase> compared_cases(const std::vector<ComparedPoint>& points, const Launches& before,
                                      const Launches& after);
Table changed_table(const std::vector<ComparedPoint>& points, const Launches& after);
Table one_sided_table(const Launches& before, const Launches& after);
Table environment_table(const Launches& before, const Launches& after);

}  // namespace shardmark
