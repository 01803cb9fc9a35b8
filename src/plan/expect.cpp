// Computes the expected cost of a point from the program of its step and the tables in specs/.
#include "plan/plan.h"
#include "specs/collectives.h"
#include "specs/parts.h"
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
  const strategies::Stages stages(point);
  const strategies::StagesCost cost = strategies::cost_of(stages, batch);
  expectation.cost = cost.cost;
  expectation.by_phase = strategies::step_traffic(stages.programs);
  expectation.activation_bytes = cost.activation_bytes;
  expectation.flops_per_step = table->step_flops() * batch * static_cast<double>(t.accumulation) /
                               static_cast<double>(point.ranks_per_copy());
  return expectation;
}

// Bytes that a rank sends, as the mean over ranks. A rule for the parts of an all_to_all_v is the same for
// every sender, so its mean equals that of equal parts. Only a file of counts gives senders different
// amounts.
double sent_bytes(const Point& point) {
  const CollectivePoint& c = point.collective;
  const specs::CollectiveRow& row = specs::collective(c.operation);
  if (row.has_parts && point.impossible.empty()) {
    const Choice parts = choice_from_text(c.parts);
    const int64_t element = specs::dtype_bytes(c.dtype);
    if (parts.name == "counts")
      return specs::share_out(parts, point.ranks, c.bytes / element, point.folder).moved() *
             static_cast<double>(element);
  }
  return static_cast<double>(c.bytes) * specs::ring_factor(row.what, point.ranks);
}

}  // namespace

Expectation expect(const Point& point) {
  if (point.workload == "training" || point.workload == "train") return expect_training(point);
  Expectation expectation;
  expectation.cost.traffic_bytes = sent_bytes(point);
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
