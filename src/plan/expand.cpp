// Expands a block to points: the product of the values of its axes. The loop order of axes (AxisRow::loop)
// decides the order of points: the innermost loop varies fastest.
#include <fmt/format.h>

#include <algorithm>

#include "plan/axes.h"
#include "plan/effects.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

constexpr size_t kMostPoints = 100000;  // of a block; a guard against mistakes

// Whether an axis of a collective is skipped: an operation that does not reduce, cannot run in place, or has
// equal parts has only one value on that axis. For training points this needs the number of ranks and is
// decided later, by settle_idle_values().
bool passes_over(const AxisRow& axis, const Point& point) {
  return point.workload == "collective" && !acts(axis, point);
}

// Reports an axis whose values no point takes: a list gives a warning, and a single value is an error unless
// the points have it anyway.
void tell_unused(const AxisRow& axis, const SuiteBlock& block, const std::vector<Point>& points,
                 std::vector<std::string>& warnings) {
  const std::vector<AxisValue>& values = block.values.at(axis.key);
  if (!std::all_of(points.begin(), points.end(),
                   [&](const Point& point) { return passes_over(axis, point); }))
    return;
  if (values.size() > 1) {
    warnings.push_back(fmt::format("{}{} changes nothing here, so that its values are one point: {}",
                                   block.place, axis.key, why_idle(axis, points.front())));
    return;
  }
  Point written = points.front();
  set_value(axis, values.front(), written);
  if (!is_default(axis, written) && value_of(axis, points.front()) != values.front())
    throw UsageError(fmt::format("{}{} {} changes nothing here: {}, or leave it out", block.place, axis.key,
                                 value_text(axis, written), why_idle(axis, points.front())));
}

// Replaces the points by their product with the values of one more axis.
void cross(std::vector<Point>& points, const AxisRow& axis, const std::vector<AxisValue>& values,
           const std::string& place) {
  std::vector<Point> product;
  for (const auto& point : points) {
    if (passes_over(axis, point)) {
      product.push_back(point);
      continue;
    }
    if (product.size() + values.size() > kMostPoints)
      throw UsageError(
          fmt::format("{}this block makes more than {} points; shorten its lists", place, kMostPoints));
    for (const auto& value : values) {
      product.push_back(point);
      set_value(axis, value, product.back());
    }
  }
  points = std::move(product);
}

}  // namespace

std::vector<Point> expand(const SuiteBlock& block, std::vector<std::string>& warnings) {
  std::vector<const AxisRow*> axes;
  for_each_axis([&](const AxisRow& axis) {
    if (block.values.contains(axis.key)) axes.push_back(&axis);
  });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const AxisRow* a, const AxisRow* b) { return a->loop < b->loop; });
  std::vector<Point> points = {block.base};
  for (const AxisRow* axis : axes) cross(points, *axis, block.values.at(axis->key), block.place);
  for (Point& point : points) {
    if (point.workload != "collective") continue;
    const specs::CollectiveRow& row = specs::collective(point.collective.operation);
    if (!row.reduces) point.collective.reduction = "none";
    if (!row.in_place) point.collective.in_place = false;
  }
  for (const AxisRow* axis : axes) tell_unused(*axis, block, points, warnings);
  return points;
}

}  // namespace shardmark
