// What strategy auto may become, for every point that leaves it open: a row per candidate.
#include "analysis/cells.h"
#include "cli/plan_tables.h"
#include "laws/vocabulary.h"
#include "strategies/auto_choice.h"

namespace shardmark {
namespace {

std::vector<Cell> row_of(const Point& point, const strategies::Candidate& candidate, const World& world) {
  const auto& options = strategies::strategy(candidate.strategy.name).options;
  return {cells::words(model_name(point)),
          cells::words(point.training.precision),
          cells::count(point.ranks),
          point.training.batch_size == kLargest ? cells::words("largest")
                                                : cells::count(point.training.batch_size),
          cells::count(point.training.accumulation),
          cells::words(to_text(without_defaults(candidate.strategy, options))),
          cells::mebibytes(candidate.needed_bytes),
          world.memory_per_rank_bytes == 0 ? cells::words("") : cells::yes_no(candidate.fits),
          cells::mebibytes(candidate.cost.traffic_bytes),
          cells::count(candidate.cost.num_operations)};
}

}  // namespace

Table auto_table(const std::vector<const Point*>& points, const World& world) {
  Table table{"auto",
              "What auto chooses from",
              {},
              {{"model", "", false, true},
               {"precision", "", false, true},
               {"ranks", "", true, true},
               {"batch", "per rank", true, true},
               {"accumulation", "", true, true},
               {"candidate", "", false},
               {"needs", "MiB per rank"},
               {"fits", "", false},
               {"traffic", "MiB"},
               {"operations", ""}},
              {}};
  for (const Point* point : points) {
    const auto model = laws::model_law(point->training.model.name).table(point->training.model.options);
    const strategies::Surroundings around{static_cast<double>(world.memory_per_rank_bytes),
                                          expect(*point).activation_bytes, world.ranks_per_node};
    for (const auto& candidate : strategies::decide(strategies::step_input(*point, model), around).candidates)
      table.rows.push_back(row_of(*point, candidate, world));
  }
  table.num_section_columns = 5;
  table.notes = {
      "Of those that fit (plan: --memory; a run: the memory of a rank), auto takes the one whose operations "
      "take "
      "least time over the network, which a run probes when it comes to the point; within 5 %, the first. "
      "The "
      "study says which and why.",
      "needs: state, slots and an estimate of activations, on the rank that has most. traffic and "
      "operations: "
      "per rank and step."};
  return table;
}

}  // namespace shardmark
