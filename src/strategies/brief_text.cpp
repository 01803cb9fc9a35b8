// Leaves out the options that are at their defaults.
#include "strategies/brief_text.h"

#include "strategies/choice_kinds.h"

namespace shardmark {
namespace {

Choice brief(const std::string& axis, const Choice& choice) {
  return without_defaults(choice, known_options(axis, choice));
}

}  // namespace

std::string brief_text(const std::string& axis, const Choice& choice) { return to_text(brief(axis, choice)); }

std::string brief_text(const std::string& axis, const std::string& text) {
  return brief_text(axis, choice_or_name(text));
}

std::string brief_text(const Point& point) {
  if (!is_known_workload(point)) return "a point of the unknown kind '" + point.workload + "'";
  Point shorter = point;
  TrainingPoint& t = shorter.training;
  t.model = brief("model", t.model);
  t.strategy = brief("strategy", t.strategy);
  t.save = brief("save", t.save);
  t.products = brief("products", t.products);
  return to_text(shorter);
}

std::string strategy_text(const TrainingPoint& point) {
  const std::string text = brief_text("strategy", point.strategy);
  return point.chosen.empty() ? text : text + ": " + brief_text("strategy", point.chosen);
}

}  // namespace shardmark
