// Stages, their memory and their time.
#include "analysis/predict/parallel3d.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark::parallel3d {
namespace {

double real(int64_t value) { return static_cast<double>(value); }

// What of the model a stage has.
struct Stage {
  double layers;
  bool first, last;
};

Stage first_stage(const Job3d& job, const Grid& grid) {
  return {real(job.shape.layers / grid.pipeline), true, grid.pipeline == 1};
}
Stage last_stage(const Job3d& job, const Grid& grid) {
  return {real(job.shape.layers / grid.pipeline), grid.pipeline == 1, true};
}

// On each rank of its tensor group.
double parameters(const Job3d& job, const Stage& stage, const Grid& grid) {
  const double width = real(job.shape.width), t = real(grid.tensor);
  const double whole_of_layer = 6 * width;  // both norms, the biases of both output projections
  const double layer = real(12 * job.shape.width * job.shape.width + 13 * job.shape.width);
  return stage.layers * ((layer - whole_of_layer) / t + whole_of_layer) +
         real(job.shape.vocabulary) * width / t * (stage.first || stage.last ? 1 : 0) +
         (stage.first ? real(job.shape.sequence) * width : 0) + (stage.last ? 2 * width : 0);
}

double tokens(const Job3d& job) { return real(job.micro_batch * job.shape.sequence); }
double boundary_bytes(const Job3d& job) {
  return tokens(job) * real(job.shape.width) * real(job.bytes.compute);
}

// in_flight: micro-batches whose backward is still to come. The head's are those of one: its backward
// follows at once.
double activations(const Job3d& job, const Stage& stage, const Grid& grid, double in_flight) {
  const double width = real(job.shape.width), t = real(grid.tensor);
  const double layer = 4 * width + (12 * width + real(job.shape.heads)) / t;
  const double head = stage.last ? width + real(job.shape.vocabulary) / t : 0;
  const double layers = job.recompute ? in_flight * stage.layers * width + layer  // one of them whole again
                                      : in_flight * stage.layers * layer;
  return tokens(job) * (layers + head);
}

// Of one micro-batch: forward, once more where it is repeated, and backward, twice that.
double compute_flops(const Job3d& job, const Stage& stage) {
  const auto& blocks = job.model.blocks;
  return (job.recompute ? 4 : 3) * stage.layers * blocks[1].forward_flops +
         (stage.last ? 3 * blocks.back().forward_flops : 0);
}

double compute_s(const Job3d& job, const Stage& stage, const Grid& grid) {
  const Stage whole{real(job.shape.layers), true, true};
  return job.compute_s * compute_flops(job, stage) / compute_flops(job, whole) / real(grid.tensor);
}

double tensor_s(const Job3d& job, const Stage& stage, const Grid& grid) {
  const double all_reduces =
      stage.layers * (job.recompute ? 6 : 4) + (stage.first ? 1 : 0) + (stage.last ? 1 : 0);
  return all_reduces * job.operation_s(Collective::all_reduce, boundary_bytes(job), {grid.tensor, 1});
}

double data_s(const Job3d& job, const Grid& grid, double most_parameters, Span stages) {
  const double element = real(job.bytes.reduce);
  double seconds = job.operation_s(Collective::all_reduce, most_parameters * element,
                                   specs::span_of(grid.data, grid.tensor, job.ranks_per_node));
  if (grid.pipeline > 1)  // the first stage's embedding is the last one's output layer
    seconds +=
        job.operation_s(Collective::all_reduce,
                        real(job.shape.vocabulary * job.shape.width) / real(grid.tensor) * element, stages);
  return seconds;
}

// Memory of the stage that has most: the first one has most micro-batches in flight, the last one the logits.
void add_memory(Cost3d& cost, const Job3d& job, const Grid& grid) {
  const auto each = real(specs::bytes_per_parameter(job.bytes, job.optimizer_elements).total());
  const auto consider = [&](const Stage& stage, int64_t in_flight) {
    const double state = parameters(job, stage, grid) * each;
    const double activation = activations(job, stage, grid, real(in_flight)) * real(job.bytes.compute);
    if (state + activation < cost.bytes()) return;
    cost.state_bytes = state;
    cost.activation_bytes = activation;
  };
  consider(first_stage(job, grid), std::min(grid.pipeline, cost.num_micro_batches));
  consider(last_stage(job, grid), 1);
}

}  // namespace

Job3d job_3d(const Choice& model) {
  if (!model.name.starts_with("gpt2"))
    throw UsageError("tensor groups are known for the layers of gpt2 and its sizes, not for those of model " +
                     model.name + "; take one of these");
  Job3d job;
  job.shape = specs::gpt2_shape(model.options);
  job.model = specs::model_spec(model.name).table(model.options);
  return job;
}

std::vector<Grid> grids(const Job3d& job, int64_t ranks) {
  std::vector<Grid> all;
  for (int64_t t = 1; t <= std::min({job.ranks_per_node, job.shape.heads, ranks}); ++t) {
    if (job.shape.heads % t != 0 || job.ranks_per_node % t != 0 || ranks % t != 0) continue;
    for (int64_t p = 1; p <= std::min(job.shape.layers, ranks / t); ++p) {
      const int64_t d = ranks / t / p;
      if (job.shape.layers % p == 0 && d * t * p == ranks && job.global_batch % (d * job.micro_batch) == 0)
        all.push_back({d, t, p});
    }
  }
  return all;
}

Cost3d cost_3d(const Job3d& job, const Grid& grid) {
  Cost3d cost;
  cost.num_micro_batches = job.global_batch / (grid.data * job.micro_batch);
  add_memory(cost, job, grid);

  const Span stages{2, grid.ranks() > job.ranks_per_node ? 2 : 1};  // two of them, where they lie apart
  const Stage slowest = last_stage(job, grid);                      // it has the output layer
  const double compute = compute_s(job, slowest, grid), tensor = tensor_s(job, slowest, grid);
  const double pipeline =
      grid.pipeline > 1 ? 2 * job.operation_s(Collective::send_recv, boundary_bytes(job), stages) : 0;
  const double m = real(cost.num_micro_batches);
  cost.compute_s = m * compute;
  cost.tensor_s = m * tensor;
  cost.pipeline_s = m * pipeline;
  cost.bubble_s = real(grid.pipeline - 1) * (compute + tensor + pipeline);
  const double most_parameters =
      std::max(parameters(job, first_stage(job, grid), grid), parameters(job, slowest, grid));
  cost.data_s = data_s(job, grid, most_parameters, stages);
  return cost;
}

}  // namespace shardmark::parallel3d
