// A transformer's step on data x tensor x pipeline ranks, by formula only: shardmark does not train so.
// Layers are cut across a tensor group as Megatron-LM cuts them (Shoeybi et al. 2019, section 3), dealt
// evenly to pipeline stages that run one forward, one backward (Narayanan et al., SC 2021, section 2.2), and
// each stage has `data` replicas. No interleaved stages, no sequence parallelism, no overlap.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "specs/collective_cost.h"
#include "specs/element_bytes.h"
#include "specs/model_table.h"
#include "specs/models/gpt2.h"

namespace shardmark::parallel3d {

using specs::Collective;
using specs::Span;

// Ranks in Megatron-LM's order: those of a tensor group are neighbours, then replicas, then stages.
struct Grid {
  int64_t data = 1, tensor = 1, pipeline = 1;
  int64_t ranks() const { return data * tensor * pipeline; }
  bool operator==(const Grid&) const = default;
};

struct Job3d {
  specs::Gpt2Shape shape = {};
  specs::ModelTable model;                    // of that shape
  int64_t global_batch = 1, micro_batch = 1;  // samples
  bool recompute = false;                     // layers keep their input alone, and run forward again
  specs::ElementBytes bytes = {};
  int64_t optimizer_elements = 0;
  double compute_s = 0;  // of a micro-batch by the whole model on one rank, recomputing included
  int64_t ranks_per_node = 1;
  // Seconds of a collective; a NaN where it is not known.
  std::function<double(Collective operation, double bytes, Span span)> operation_s = {};
};

// Seconds of a step, on its slowest stage; bytes on the rank that has most.
struct Cost3d {
  int64_t num_micro_batches = 0;  // of a replica, in a step
  double state_bytes = 0;         // parameters, gradients, optimizer state
  double activation_bytes = 0;    // of the micro-batches in flight
  double compute_s = 0;
  double tensor_s = 0;    // all-reduces of a tensor group
  double pipeline_s = 0;  // activations to the next stage, their gradients back
  double bubble_s = 0;    // (pipeline - 1) times what a micro-batch takes: filling and draining
  double data_s = 0;      // all-reduce of the gradients, and of the embedding shared by two stages
  double step_s() const { return compute_s + tensor_s + pipeline_s + bubble_s + data_s; }
  double bytes() const { return state_bytes + activation_bytes; }
};

// The shape and the table of a resolved model. UsageError: not a transformer.
Job3d job_3d(const Choice& model);

// Every way to use all ranks: tensor groups within a node that divide its ranks and the heads, stages that
// divide the layers, replicas that divide the global batch into whole micro-batches.
std::vector<Grid> grids(const Job3d& job, int64_t ranks);

// Per layer, with tokens T = micro_batch x sequence, width C, t = tensor: 4 all-reduces of T C values a
// micro-batch (2 forward, 2 backward; 2 more to recompute); kept activations T (4 C + (12 C + heads) / t)
// values: (10 + 24/t) s b h bytes of Korthikanti et al. 2022, section 4.1, without dropout's masks and, as
// attention is fused, without its scores; parameters (12 C^2 + 7 C) / t + 6 C: norms and the biases added
// after an all-reduce are on all ranks. The embedding and the output layer are cut by words.
Cost3d cost_3d(const Job3d& job, const Grid& grid);

}  // namespace shardmark::parallel3d
