// See about.h.
#include "analysis/about.h"

#include "analysis/cells.h"
#include "analysis/known.h"
#include "base/units.h"

namespace shardmark {

std::vector<Column> about_columns() {
  return {{"model, operation", "", false},
          {"strategy, place", "", false},
          {"ranks", ""},
          {"batch or size", "", false}};
}

std::vector<Cell> about_cells(const MergedPoint& merged) {
  const Point& p = merged.point;
  if (is_training(merged)) {
    const Choice& strategy = p.training.strategy;
    return {cells::words(p.training.model.name),
            cells::words(to_text(without_defaults(strategy, known_options(strategy)))), cells::count(p.ranks),
            cells::words("batch " + std::to_string(p.training.batch_size))};
  }
  const CollectivePoint& c = p.collective;
  return {cells::words(c.operation), cells::words(c.in_place ? "in place" : "out of place"),
          cells::count(p.ranks), cells::words(format_bytes(static_cast<double>(c.bytes)))};
}

}  // namespace shardmark
