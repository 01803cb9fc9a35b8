// The tables that shardmark plan prints: points with their expected cost, points that cannot run, and totals.
#pragma once

#include <vector>

#include "analysis/overview/overview.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "plan/plan.h"
#include "schema/axes.h"

namespace shardmark {

// Returns the tables "training", "communication", "auto", "collectives" and "impossible" that have rows.
// Repetitions are one row. limit_bytes is the memory of a rank, for the largest batches; 0: unknown.
std::vector<Table> plan_tables(const std::vector<Point>& plan, const Expectations& expected,
                               const World& world, int64_t limit_bytes);

// The first screen: a row for each strategy of a setting, and for each collective.
Overview plan_overview(const std::vector<Point>& plan, const Expectations& expected);

struct PlanTotals {
  int64_t num_points = 0;  // repeats included
  int64_t num_impossible = 0;
  // Predicted memory of a rank with activations, for the point that needs the most.
  double most_bytes = 0;
  double time_limit_s = 0;  // timed steps of all points that can run
  // The longest time that warm-up may take, and ablations as well: the sum of the time limits, not of
  // durations.
  double besides_s = 0;
};
PlanTotals plan_totals(const std::vector<Point>& plan, const Expectations& expected);

// What is expected of a point, as the predicted measures of a study's points: the quantities of
// analysis/frame/quantities.h are its columns.
MergedPoint as_merged(const Point& point, const Expectation& expectation);

// The single tables.
Table auto_table(const std::vector<const Point*>& points, const World& world);
Table training_table(const std::vector<const Point*>& points, const Expectations& expected,
                     int64_t limit_bytes);
Table communication_table(const std::vector<const Point*>& points, const Expectations& expected);
Table collectives_table(const std::vector<const Point*>& points);
OverviewTable collectives_answer(const std::vector<const Point*>& points);
// Columns for the transport, the environment, and how long a point is measured. A sustained run has no step
// numbers.
ColumnsOf<Point> measuring_columns();
Cell batch_cell(const Point& point);  // the batch per rank
// A point's name in the table "impossible". It omits the size of a collective: sizes with the same reason
// share a row.
std::string impossible_name(const Point& point);

}  // namespace shardmark
