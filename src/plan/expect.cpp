// What a point is expected to cost, by its program and the tables of specs/.
#include "plan/plan.h"
#include "specs/collectives.h"
#include "specs/specs.h"
#include "strategies/activations.h"

namespace shardmark {
namespace {

Expectation expect_training(const Point& point) {
  const TrainingPoint& t = point.training;
  const auto table = specs::model_spec(t.model.name).table(t.model.options);
  const auto batch = static_cast<double>(t.batch_size == kLargest ? 1 : t.batch_size);

  Expectation expectation;
  expectation.num_parameters = table.num_parameters();
  expectation.num_active_parameters = table.num_active_parameters();
  const strategies::StepInput input = strategies::step_input(point, table);
  expectation.cost = strategies::cost_of(t.strategy.name, input);
  expectation.activation_bytes = strategies::activation_bytes(input, batch);
  expectation.flops_per_step = table.step_flops() * batch * static_cast<double>(t.accumulation);
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

}  // namespace shardmark
