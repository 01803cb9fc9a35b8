// Takes the defaults out of a point before it becomes text.
#include "laws/short_text.h"

#include "laws/model_table.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
std::string short_text(const Point& point) {
  Point shorter = point;
  if (point.workload != "collective") {
    TrainingPoint& t = shorter.training;
    t.model = without_defaults(t.model, model_law(t.model.name).options);
    t.strategy = without_defaults(t.strategy, strategy_law(t.strategy.name).options);
  }
  return to_text(shorter);
}

}  // namespace shardmark::laws
