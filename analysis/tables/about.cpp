#include "analysis/tables/about.h"

#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "base/units.h"

namespace shardmark {
namespace {

Cell work_cell(const MergedPoint& merged) {
  const Point& p = merged.point;
  return cells::words(is_training(merged) ? p.training.model.name : operation_text(p.collective));
}

Cell strategy_or_place(const MergedPoint& merged) {
  const Point& p = merged.point;
  if (!is_training(merged)) return cells::words(p.collective.in_place ? "in place" : "out of place");
  return strategy_cell(p.training);
}

Cell size_cell(const MergedPoint& merged) {
  const Point& p = merged.point;
  return cells::words(is_training(merged) ? "batch " + std::to_string(p.training.batch_size)
                                          : format_bytes(static_cast<double>(p.collective.bytes)));
}

}  // namespace

ColumnsOf<MergedPoint> about_columns() {
  return {{{"model, operation", "", false}, work_cell},
          {choice_column("strategy, place"), strategy_or_place},
          {{"ranks", ""}, [](const auto& merged) { return cells::count(merged.point.ranks); }},
          nodes_column(),
          machine_column(),
          {{"batch or size", "", false}, size_cell}};
}

}  // namespace shardmark
