// The strategies that `auto` may become, for every point that uses it: a row for each candidate.
#include "analysis/table/axis_columns.h"
#include "cli/plan_tables.h"
#include "specs/specs.h"
#include "strategies/auto.h"

namespace shardmark {
namespace {

struct CandidateRow {
  const Point* point;
  strategies::Candidate candidate;
};

std::vector<CandidateRow> rows_of(const std::vector<const Point*>& points, const World& world) {
  std::vector<CandidateRow> rows;
  for (const Point* point : points) {
    const strategies::DecisionInputs around{static_cast<double>(world.memory_per_rank_bytes),
                                            expect(*point).activation_bytes, world.ranks_per_node};
    for (const auto& candidate : strategies::decide(strategies::RankStep(*point).input(), around).candidates)
      rows.push_back({point, candidate});
  }
  return rows;
}

ColumnsOf<Point> auto_setting_columns() {
  const ColumnsOf<Point> world = {
      {{"ranks", "", true, true}, [](const Point& point) { return cells::count(point.ranks); }},
      {{"batch", "per rank", true, true}, batch_cell}};
  return starting(Starts::section,
                  join(axis_columns({"model", "precision"}), world, axis_columns({"accumulation"})));
}

ColumnsOf<CandidateRow> candidate_columns(const World& world) {
  constexpr const char* kMoved = "per rank and step.";
  return {{choice_column("candidate"),
           [](const auto& row) { return choice_cell("strategy", row.candidate.strategy); }},
          {{"needs", "MiB per rank"},
           [](const auto& row) { return cells::mebibytes(row.candidate.needed_bytes); },
           "state, slots and an estimate of activations, on the rank that has most."},
          {{"fits", "", false},
           [any_limit = world.memory_per_rank_bytes != 0](const auto& row) {
             return any_limit ? cells::yes_no(row.candidate.fits) : cells::words("");
           }},
          {{"traffic", "MiB"},
           [](const auto& row) { return cells::mebibytes(row.candidate.cost.traffic_bytes); },
           kMoved},
          {{"operations", ""},
           [](const auto& row) { return cells::count(row.candidate.cost.num_operations); },
           kMoved}};
}

}  // namespace

Table auto_table(const std::vector<const Point*>& points, const World& world) {
  Table table = make_table("auto", "What auto chooses from",
                           join(via(&CandidateRow::point, auto_setting_columns()), candidate_columns(world)),
                           rows_of(points, world));
  table.explanations.emplace(
      table.explanations.begin(),
      "Of those that fit (plan: --memory; a run: the memory of a rank), auto takes the one whose operations "
      "take the least time over the network, which a run probes when it reaches the point; within 5 %, the "
      "first. The study records which and why.");
  return table;
}

}  // namespace shardmark
