// What a point is expected to cost, by its program and the tables of specs/.
#include "plan/plan.h"
#include "specs/collectives.h"
#include "specs/specs.h"
#include "strategies/stages.h"

namespace shardmark {
namespace {

Expectation expect_training(const Point& point) {
  const TrainingPoint& t = point.training;
  const specs::SharedTable table = specs::model_table(t.model);
  const auto batch = static_cast<double>(t.batch_size == kLargest ? 1 : t.batch_size);

  Expectation expectation;
  expectation.num_parameters = table->num_parameters();
  expectation.num_active_parameters = table->num_active_parameters();
  const strategies::StagesCost cost = strategies::cost_of(strategies::Stages(point), batch);
  expectation.cost = cost.cost;
  expectation.activation_bytes = cost.activation_bytes;
  expectation.flops_per_step = table->step_flops() * batch * static_cast<double>(t.accumulation) /
                               static_cast<double>(point.ranks_per_copy());
  return expectation;
}

}  // namespace

Expectation expect(const Point& point) {
  if (point.workload == "training" || point.workload == "train") return expect_training(point);
  Expectation expectation;
  expectation.cost.traffic_bytes =
      static_cast<double>(point.collective.bytes) *
      specs::ring_factor(specs::collective(point.collective.operation).what, point.ranks);
  expectation.cost.num_operations = 1;
  return expectation;
}

Expectations expect_all(const std::vector<Point>& plan) {
  Expectations all;
  for (const Point& point : plan)
    if (point.impossible.empty() && point.repeat == 0) all.emplace_hint(all.end(), &point, expect(point));
  return all;
}

}  // namespace shardmark
