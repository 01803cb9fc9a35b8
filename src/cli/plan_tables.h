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
std::vector<Table> plan_tables(const std::vector<Point>& plan, const World& world, int64_t limit_bytes,
                               int64_t num_samples);

// The first screen: a row for each strategy of a setting and for each collective. tables: the plan's.
Overview plan_overview(const std::vector<Point>& plan, const std::vector<Table>& tables);

struct PlanTotals {
  int64_t num_points = 0;  // repeats included
  int64_t num_impossible = 0;
  double most_bytes = 0;    // predicted memory of a rank, with activations, of the point that needs most
  double time_limit_s = 0;  // of timed steps, sum over the points that can run
  double besides_s =
      0;  // the most that warm-up may take, and ablations again: their time limits, no duration
};
PlanTotals plan_totals(const std::vector<Point>& plan);

// The parts.
Table auto_table(const std::vector<const Point*>& points, const World& world);
Table training_table(const std::vector<const Point*>& points, int64_t limit_bytes);
Table communication_table(const std::vector<const Point*>& points);
Table samples_table(const std::vector<const Point*>& points, int64_t count);
// How long a point is measured; a point that goes on for hours has no numbers of steps.
template <class Row>
ColumnsOf<Row> sampling_columns(const Sampling& (*sampling)(const Row&)) {
  const auto of_steps = [=](auto cell) {
    return [=](const Row& row) {
      return cells::unless_default(sampling(row).duration_s > 0, cell(sampling(row)));
    };
  };
  return {{{"steps at least", "", true, true},
           of_steps([](const Sampling& s) { return cells::count(s.min_steps); })},
          {{"steps at most", "", true, true},
           of_steps([](const Sampling& s) { return cells::count(s.max_steps); })},
          {{"time limit", "s", true, true},
           of_steps([](const Sampling& s) { return cells::number(s.time_limit_s, 3); })},
          {{"duration", "s", true, true}, [=](const Row& row) {
             const double duration_s = sampling(row).duration_s;
             return cells::unless_default(!(duration_s > 0), cells::number(duration_s, 4));
           }}};
}
Cell batch_cell(const Point& point);                 // per rank
double total_bytes(const Expectation& expectation);  // memory of a rank, activations included
// Without the size of a collective: its sizes are one row where they share the reason.
std::string impossible_name(const Point& point);

}  // namespace shardmark
