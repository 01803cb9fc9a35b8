// Calibration and prediction of published rows.
#include "analysis/predict/published_scaling.h"
#include "analysis/predict/simulate.h"
#include "base/error.h"
#include "specs/collective_cost.h"
#include "specs/specs.h"
#include "strategies/activations.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

// A row's step with given seconds of computing in each micro-batch: forward a third and backward two
// thirds of it, divided among the blocks by their FLOPs.
class Step {
 public:
  Step(const PublishedScaling& published, const PublishedRow& row)
      : model_(specs::model_spec(row.point.training.model.name).table(row.point.training.model.options)),
        program_(strategies::strategy(row.point.training.strategy.name)
                     .step(strategies::step_input(row.point, model_))) {
    for (const strategies::CollectiveCall& operation : program_.calls)
      operation_s_.push_back(specs::collective_s(
          operation.what, operation.bytes,
          specs::span_of(operation.team.ranks, operation.team.stride, published.ranks_per_node),
          {published.node.cost(), published.across.cost()}));
  }

  SimulatedStep with(double computing_s) const {
    ComputeTimes times;
    for (const specs::BlockSpec& block : model_.blocks) {
      const double forward_s = computing_s * block.forward_flops / model_.step_flops();
      times.forward_s.push_back(forward_s);
      times.backward_s.push_back(2 * forward_s);
    }
    return simulate(program_, times, operation_s_, /*progress=*/1);
  }

 private:
  specs::ModelTable model_;
  strategies::Program program_;
  std::vector<double> operation_s_;
};

// The computing with which the step takes as long as it did. A step never gets shorter by more computing.
double calibrated(const Step& step, double measured_s) {
  double low = 0, high = measured_s;
  ENSURE(step.with(low).step_s <= measured_s, "published links slower than the published step");
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (step.with(middle).step_s < measured_s ? low : high) = middle;
  }
  return high;
}

}  // namespace

std::vector<PredictedRow> predicted_rows(const PublishedScaling& published) {
  constexpr double kNone = Measures::kNone;
  if (!published.unpredicted.empty())
    return std::vector<PredictedRow>(published.rows.size(), {kNone, kNone, kNone});
  const PublishedRow& first = published.rows.front();
  const double computing_s = calibrated(Step(published, first), first.step_s);
  std::vector<PredictedRow> rows;
  for (const PublishedRow& row : published.rows) {
    const SimulatedStep step = Step(published, row).with(computing_s);
    rows.push_back({step.step_s, step.communication_s, step.exposed_s});
  }
  return rows;
}

double predicted_memory_bytes(const Point& point) {
  const TrainingPoint& t = point.training;
  const specs::ModelTable model = specs::model_spec(t.model.name).table(t.model.options);
  const strategies::StepInput input = strategies::step_input(point, model);
  const strategies::Cost cost = strategies::cost_of(t.strategy.name, input);
  return cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes + cost.transient_bytes +
         strategies::activation_bytes(input, static_cast<double>(t.batch_size));
}

}  // namespace shardmark
