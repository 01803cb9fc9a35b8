// The product of a block's axes. The axis named last varies fastest, so that points stand in the order of a
// table's columns.
#include <fmt/format.h>

#include <algorithm>

#include "laws/collectives.h"
#include "plan/axes.h"

namespace shardmark {
namespace {

constexpr size_t kMostPoints = 100000;  // of a block: a bound against slips

// Every point with every value: set(point, value).
template <class Value, class Set>
void cross(std::vector<Point>& points, const std::vector<Value>& values, const std::string& place, Set set) {
  if (points.size() * values.size() > kMostPoints)
    throw UsageError(
        fmt::format("{}this block makes more than {} points; shorten its lists", place, kMostPoints));
  std::vector<Point> product;
  product.reserve(points.size() * values.size());
  for (const auto& point : points)
    for (const auto& value : values) {
      product.push_back(point);
      set(product.back(), value);
    }
  points = std::move(product);
}

void cross_common(std::vector<Point>& points, const CommonAxes& axes) {
  cross(points, axes.ranks, axes.place, [](Point& p, int64_t value) { p.ranks = value; });
  cross(points, axes.transports, axes.place, [](Point& p, const std::string& value) { p.transport = value; });
}

}  // namespace

std::vector<Point> expand(const TrainingAxes& axes) {
  Point base;
  base.workload = "training";
  base.sampling = axes.sampling;
  base.training.scaling = axes.scaling;
  std::vector<Point> points = {base};
  const std::string& place = axes.place;
  cross(points, axes.models, place, [](Point& p, const Choice& value) { p.training.model = value; });
  cross(points, axes.data, place, [](Point& p, const Choice& value) { p.training.data = value; });
  cross(points, axes.optimizers, place, [](Point& p, const Choice& value) { p.training.optimizer = value; });
  cross(points, axes.precisions, place,
        [](Point& p, const std::string& value) { p.training.precision = value; });
  cross(points, axes.reduce_dtypes, place,
        [](Point& p, const std::string& value) { p.training.reduce_dtype = value; });
  cross(points, axes.clip_norms, place, [](Point& p, double value) { p.training.clip_norm = value; });
  cross(points, axes.checkpointings, place,
        [](Point& p, int64_t value) { p.training.checkpointing = value; });
  cross(points, axes.strategies, place, [](Point& p, const Choice& value) { p.training.strategy = value; });
  cross(points, axes.accumulations, place, [](Point& p, int64_t value) { p.training.accumulation = value; });
  cross(points, axes.batches, place, [](Point& p, int64_t value) { p.training.batch_size = value; });
  cross_common(points, axes);
  return points;
}

std::vector<Point> expand(const CollectiveAxes& axes) {
  Point base;
  base.workload = "collective";
  base.sampling = axes.sampling;
  std::vector<Point> all;
  for (const auto& operation : axes.operations) {
    const laws::CollectiveRow& row = laws::collective(operation);
    base.collective.operation = operation;
    std::vector<Point> points = {base};
    const std::string& place = axes.place;
    const std::vector<std::string> reductions =
        row.reduces ? axes.reductions : std::vector<std::string>{"none"};
    const std::vector<bool> in_place = row.in_place ? axes.in_place : std::vector<bool>{false};
    cross(points, axes.dtypes, place, [](Point& p, const std::string& value) { p.collective.dtype = value; });
    cross(points, reductions, place,
          [](Point& p, const std::string& value) { p.collective.reduction = value; });
    cross(points, in_place, place, [](Point& p, bool value) { p.collective.in_place = value; });
    cross_common(points, axes);
    cross(points, axes.sizes, place, [](Point& p, int64_t value) { p.collective.bytes = value; });
    all.insert(all.end(), points.begin(), points.end());
  }
  return all;
}

}  // namespace shardmark
