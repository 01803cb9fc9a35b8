// What shardmark plan prints: the points with their expected cost, the impossible ones, the totals.
#pragma once

#include <vector>

#include "analysis/table.h"
#include "plan/plan.h"
#include "schema/axes.h"

namespace shardmark {

// Tables "training", "communication", "auto", "collectives" and "impossible", those with rows alone;
// repetitions are one row. num_samples: adds the table "samples", so many of each rank.
std::vector<Table> plan_tables(const std::vector<Point>& plan, const World& world, int64_t num_samples = 0);

struct PlanTotals {
  int64_t num_points = 0;  // repeats included
  int64_t num_impossible = 0;
  double most_bytes = 0;    // memory of a rank by the laws, with activations, of the point that needs most
  double time_limit_s = 0;  // of timed steps, sum over the points that can run
  double besides_s = 0;     // the most that warm-up may take, and twins again: their time limits, no duration
};
PlanTotals plan_totals(const std::vector<Point>& plan);

// The parts.
Table auto_table(const std::vector<const Point*>& points, const World& world);
Table training_table(const std::vector<const Point*>& points);
Table communication_table(const std::vector<const Point*>& points);
Table samples_table(const std::vector<const Point*>& points, int64_t count);
std::vector<Column> sampling_columns();
std::vector<Cell> sampling_cells(const Sampling& sampling);
double total_bytes(const Expectation& expectation);  // memory of a rank, activations included
// Names without the options that are at their defaults: of the choice on this axis.
std::string choice_name(const std::string& key, const Point& point);
std::string model_name(const Point& point);
std::string data_name(const Point& point);
std::string strategy_name(const Point& point);
Cell setting_cell(const AxisRow& axis, const Point& point);

}  // namespace shardmark
