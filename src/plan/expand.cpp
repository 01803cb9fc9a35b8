// The product of a block's axes. The loop named last varies fastest, so that points stand in the order of a
// table's columns.
#include <fmt/format.h>

#include <algorithm>

#include "plan/axes.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

constexpr size_t kMostPoints = 100000;  // of a block: a bound against slips

// An operation that does not reduce, or has no form in place, has one value on that axis.
bool passes_over(const AxisRow& axis, const CollectivePoint& collective) {
  const std::string_view key = axis.key;
  return (key == "reduction" && !specs::collective(collective.operation).reduces) ||
         (key == "in_place" && !specs::collective(collective.operation).in_place) ||
         (key == "parts" && !specs::collective(collective.operation).has_parts);
}

// Every point with every value.
void cross(std::vector<Point>& points, const AxisRow& axis, const std::vector<AxisValue>& values,
           const std::string& place) {
  std::vector<Point> product;
  for (const auto& point : points) {
    if (passes_over(axis, point.collective)) {
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

std::vector<Point> expand(const SuiteBlock& block) {
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
  return points;
}

}  // namespace shardmark
