// Adds up parameters, optimizer state, buffers and residuals.
#include "strategies/saved_state.h"

#include <functional>
#include <numeric>

#include "specs/mesh.h"
#include "specs/specs.h"
#include "strategies/strategy.h"

namespace shardmark::strategies {
namespace {

// Parameters, and the tensors of the optimizer's state that are as large.
int64_t kinds_of_tensors(const TrainingPoint& t) {
  return 1 + specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options);
}

int64_t buffer_elements(const ModelTable& table) {
  int64_t sum = 0;
  for (const auto& spec : table.buffers)
    sum += std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1}, std::multiplies<>());
  return sum;
}

// What all ranks together carry to the next step. Checkpoints of pipelines do not hold it.
int64_t carried_bytes(const Point& point, const Program& program, bool replicated_once) {
  if (point.training.pipeline > 1) return 0;
  const auto bytes = specs::element_bytes(point.training.precision, point.training.reduce_dtype);
  int64_t sum = 0;
  for (const Buffer& buffer : program.buffers)
    if (buffer.carried)
      sum += (buffer.is_replicated() && replicated_once && point.training.tensor == 1 ? 1 : point.ranks) *
             buffer.numel * specs::bytes_of(buffer.element, bytes);
  return sum;
}

}  // namespace

int64_t whole_state_bytes(const Point& point) {
  const TrainingPoint& t = point.training;
  const specs::SharedTable table = specs::model_table(t.model);
  const auto bytes = specs::element_bytes(t.precision, t.reduce_dtype);
  const RankStep step(point);
  return kinds_of_tensors(t) * table->num_parameters() * bytes.master +
         buffer_elements(*table) * bytes.compute +
         carried_bytes(point, strategy(t.strategy.name).step(step.input()), /*replicated_once=*/true);
}

int64_t sharded_state_bytes(const Point& point) {
  const TrainingPoint& t = point.training;
  const auto bytes = specs::element_bytes(t.precision, t.reduce_dtype);
  const specs::Mesh mesh = specs::mesh_of(point);
  int64_t sum = 0;
  for (int64_t stage = 0; stage < mesh.pipeline; ++stage)
    for (int64_t tensor = 0; tensor < mesh.tensor; ++tensor) {
      // One rank of each stage and tensor index stands for all copies of this part of the model. The
      // segments of its layout are whole, so that they count what all copies together write. Experts are
      // the exception: each of the neighbours that share them has others.
      const RankStep step(point, stage * mesh.pipeline_group().stride + tensor);
      const Program program = strategy(t.strategy.name).step(step.input());
      const ModelTable& table = program.regrouped ? *program.regrouped : *step.part().table;
      for (size_t group = 0; group < program.layout.size(); ++group) {
        const int64_t shares = table.groups[group].has_own_experts() ? mesh.expert_neighbours() : 1;
        for (const specs::Segment& segment : program.layout[group].segments)
          sum += kinds_of_tensors(t) * segment.range.numel * bytes.master * shares;
      }
      sum += mesh.copies().ranks * buffer_elements(*step.part().table) * bytes.compute;
      if (stage + tensor == 0) sum += carried_bytes(point, program, /*replicated_once=*/false);
    }
  return sum;
}

}  // namespace shardmark::strategies
