// Takes the defaults out of a point before it becomes text.
#include "strategies/short_text.h"

#include "specs/model_table.h"
#include "strategies/strategy.h"

namespace shardmark::strategies {
std::string short_text(const Point& point) {
  Point shorter = point;
  if (point.workload != "collective") {
    TrainingPoint& t = shorter.training;
    t.model = without_defaults(t.model, specs::model_spec(t.model.name).options);
    t.strategy = without_defaults(t.strategy, strategy(t.strategy.name).options);
  }
  return to_text(shorter);
}

}  // namespace shardmark::strategies
