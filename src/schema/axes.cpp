// Looks up axes by key, and reads and writes the values that a point has on them.
#include "schema/axes.h"

#include "base/error.h"

namespace shardmark {

std::set<std::string> with_layout_axes(std::set<std::string> others) {
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.is_layout) others.insert(axis.key);
  return others;
}

const AxisRow& axis_named(const std::string& key) {
  const AxisRow* found = nullptr;
  for_each_axis([&](const AxisRow& axis) {
    if (axis.key == key) found = &axis;
  });
  ENSURE(found != nullptr, "no axis '" + key + "'");
  return *found;
}

AxisValue value_of(const AxisRow& axis, const Point& point) {
  return visit_member(axis, point, [](const auto& member) { return AxisValue(member); });
}

bool is_default(const AxisRow& axis, const Point& point) {
  static const Point defaults;
  return value_of(axis, point) == value_of(axis, defaults);
}

void set_value(const AxisRow& axis, const AxisValue& value, Point& point) {
  visit_member(axis, point, [&]<class T>(T& member) { member = std::get<T>(value); });
  if (axis.scaling != nullptr) point.training.scaling = axis.scaling;
}

const char* workload_of(const AxisRow& axis) {
  return std::visit(
      []<class T, class Whole>(T Whole::*) {
        return std::is_same_v<Whole, Point>           ? ""
               : std::is_same_v<Whole, TrainingPoint> ? "training"
                                                      : "collective";
      },
      axis.member);
}

bool has_axis(const Point& point, const AxisRow& axis) {
  if (axis.scaling != nullptr && point.training.scaling != axis.scaling) return false;
  const std::string workload = workload_of(axis);
  return workload.empty() || workload == point.workload;
}

}  // namespace shardmark
