// What shardmark plan prints: the points with their expected cost, the impossible ones, the totals.
#pragma once

#include <vector>

#include "analysis/overview/overview.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "plan/plan.h"
#include "schema/axes.h"

namespace shardmark {

// Tables "training", "communication", "auto", "collectives" and "impossible", those with rows alone;
// repetitions are one row. limit_bytes: of a rank, for the largest batches; 0: unknown. num_samples: adds the
// table "samples", this many of each rank.
std::vector<Table> plan_tables(const std::vector<Point>& plan, const Expectations& expected,
                               const World& world, int64_t limit_bytes, int64_t num_samples);

// The first screen: a row for each strategy of a setting and for each collective.
Overview plan_overview(const std::vector<Point>& plan, const Expectations& expected);

struct PlanTotals {
  int64_t num_points = 0;  // repeats included
  int64_t num_impossible = 0;
  double most_bytes = 0;    // predicted memory of a rank, with activations, of the point that needs most
  double time_limit_s = 0;  // of timed steps, sum over the points that can run
  double besides_s = 0;     // the most that warm-up, and ablations again, may take: time limits, no duration
};
PlanTotals plan_totals(const std::vector<Point>& plan, const Expectations& expected);

// The parts.
Table auto_table(const std::vector<const Point*>& points, const World& world);
Table training_table(const std::vector<const Point*>& points, const Expectations& expected,
                     int64_t limit_bytes);
Table communication_table(const std::vector<const Point*>& points, const Expectations& expected);
Table samples_table(const std::vector<const Point*>& points, int64_t count);
Table collectives_table(const std::vector<const Point*>& points);
OverviewTable collectives_answer(const std::vector<const Point*>& points);
// Over what, and how long a point is measured; one that goes on for hours has no numbers of steps.
ColumnsOf<Point> measuring_columns();
Cell batch_cell(const Point& point);  // per rank
// Without the size of a collective: its sizes are one row where they share the reason.
std::string impossible_name(const Point& point);

}  // namespace shardmark
