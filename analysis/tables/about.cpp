#include "analysis/tables/about.h"

#include <utility>

#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "base/units.h"

namespace shardmark {
namespace {

ColumnOf<About> about_column(Column head, Cell About::*part) {
  return {std::move(head), [part](const About& about) { return about.*part; }};
}

}  // namespace

About about_point(const MergedPoint& merged) {
  const Point& p = merged.point;
  About about;
  if (is_training(merged)) {
    about.work = cells::words(p.training.model.name);
    about.strategy = strategy_cell(p.training);
    about.size = cells::words("batch " + std::to_string(p.training.batch_size));
  } else {
    about.work = cells::words(operation_text(p.collective));
    about.strategy = cells::words(p.collective.in_place ? "in place" : "out of place");
    about.size = cells::words(format_bytes(static_cast<double>(p.collective.bytes)));
  }
  about.transport = transport_cell(merged.transport);
  about.ranks = cells::count(p.ranks);
  about.nodes = nodes_column().cell(merged);
  about.machine = machine_column().cell(merged);
  return about;
}

ColumnsOf<About> columns_of_about() {
  return {about_column({"model, operation", "", false}, &About::work),
          about_column(choice_column("strategy, place"), &About::strategy),
          about_column(choice_column("transport", true), &About::transport),
          about_column({"ranks", ""}, &About::ranks),
          about_column(nodes_column().head, &About::nodes),
          about_column(machine_column().head, &About::machine),
          about_column({"batch or size", "", false}, &About::size)};
}

ColumnsOf<MergedPoint> about_columns() { return through<MergedPoint>(about_point, columns_of_about()); }

}  // namespace shardmark
