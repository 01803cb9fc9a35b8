// Calibration and prediction of published rows.
#include "base/error.h"
#include "published_scaling.h"
#include "specs/collective_cost.h"
#include "specs/specs.h"

namespace shardmark {

PublishedStep::PublishedStep(const PublishedScaling& published, const Point& point)
    : samples_(static_cast<double>(point.training.batch_size)),
      ranks_per_node_(published.ranks_per_node),
      model_(*specs::model_table(point.training.model)),
      of_rank_(specs::split_table(model_, strategies::split_of(point))),
      stages_(point) {
  // Whether these trainers hide what tensor-parallel ranks exchange behind gradients of parameters, as our
  // blocks do, is not published. They are taken to wait for every exchange.
  for (strategies::Program& program : stages_.programs)
    for (strategies::CollectiveCall& operation : program.calls)
      if (operation.inside_block) operation.inside_block->hidden_by = 0;
  for (const strategies::Program& program : stages_.programs) {
    std::vector<double>& seconds = operation_s_.emplace_back();
    for (const strategies::CollectiveCall& operation : program.calls)
      seconds.push_back(specs::collective_s(operation.what, operation.bytes,
                                            span_of(operation, published.ranks_per_node),
                                            {published.node.cost(), published.across.cost()}));
  }
}

SimulatedStep PublishedStep::with(double computing_s) const {
  ComputeTimes times;
  for (const specs::BlockSpec& block : of_rank_.blocks) {
    const double forward_s = computing_s * block.forward_flops / model_.step_flops();
    times.forward_s.push_back(forward_s);
    times.backward_s.push_back(2 * forward_s);
  }
  std::vector<strategies::SimulatedRank> ranks = simulated(stages_, times);
  for (size_t stage = 0; stage < ranks.size(); ++stage) ranks[stage].operation_s = operation_s_[stage];
  return simulate(ranks, /*progress=*/1);
}

// A step never gets shorter by more computing. One that takes step_s may compute for much longer on a single
// GPU, namely where many ranks share a micro-batch, so the upper bound is searched for.
double PublishedStep::computing_s(double step_s) const {
  double low = 0, high = step_s;
  ENSURE(with(low).step_s <= step_s, "published links slower than the published step");
  for (; with(high).step_s < step_s; high *= 2) low = high;
  constexpr int kHalvings = 36;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (with(middle).step_s < step_s ? low : high) = middle;
  }
  return high;
}

Across PublishedStep::across() const {
  Across across{};
  for (size_t stage = 0; stage < operation_s_.size(); ++stage)
    for (size_t i = 0; i < operation_s_[stage].size(); ++i)
      if (span_of(stages_.programs[stage].calls[i], ranks_per_node_).nodes > 1)
        ++across.operations, across.seconds += operation_s_[stage][i];
  const auto stages = static_cast<double>(operation_s_.size());
  return {across.operations / stages, across.seconds / stages};
}

double PublishedStep::memory_bytes() const { return strategies::cost_of(stages_, samples_).total_bytes(); }

std::vector<PredictedRow> predicted_rows(const PublishedScaling& published) {
  const PublishedRow& first = published.rows.front();
  const double computing_s = PublishedStep(published, first.point).computing_s(first.step_s);
  std::vector<PredictedRow> rows;
  for (const PublishedRow& row : published.rows) {
    const SimulatedStep step = PublishedStep(published, row.point).with(computing_s);
    rows.push_back({step.step_s, step.communication_s, step.exposed_s});
  }
  return rows;
}

}  // namespace shardmark
