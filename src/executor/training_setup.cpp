// Builds the model, the state and the executor that a training point describes.
#include "executor/training_setup.h"

#include <algorithm>

#include "base/error.h"
#include "comm/transports.h"
#include "device/device.h"
#include "specs/specs.h"
#include "strategies/messages.h"
#include "strategies/serving.h"

namespace shardmark {

namespace {

bool has_tied_group(const specs::ModelTable& table) {
  return std::any_of(table.groups.begin(), table.groups.end(),
                     [](const auto& group) { return group.is_tied; });
}

// Writes the programs of one rank in each stage, at this rank's place in the stage; process groups are the
// same for all ranks of a stage. All ranks therefore split off the same communicators in the same order, and
// know which stage has which tensors. Every stage splits off the communicator of tied groups, even if this
// rank owns no part of one.
OtherStages stages_of(const Point& point, const Programs& own, int64_t rank, strategies::Serving serving) {
  const specs::Mesh mesh = specs::mesh_of(point);
  OtherStages stages;
  stages.process_groups = {{mesh.pipeline_group()}, {mesh.copies()}, {mesh.tensor_group()}};
  if (mesh.pipeline == 1) {
    if (mesh.ranks_per_copy() == 1) stages.process_groups.clear();
    const auto process_groups = own.process_groups();
    stages.process_groups.insert(stages.process_groups.end(), process_groups.begin(), process_groups.end());
    return stages;
  }
  std::vector<strategies::Program> steps, evaluations;
  for (int64_t stage = 0; stage < mesh.pipeline; ++stage) {
    const int64_t there = rank + (stage - mesh.stage_of(rank)) * mesh.pipeline_group().stride;
    const strategies::RankStep step(point, there);
    Programs programs = programs_of(point.training.strategy, step.input());
    if (has_tied_group(*step.part().table))
      stages.process_groups.push_back({mesh.pipeline_group(), strategies::lane_of_ends()});
    const auto process_groups = programs.process_groups();
    stages.process_groups.insert(stages.process_groups.end(), process_groups.begin(), process_groups.end());
    stages.tables.push_back(programs.step.regrouped.value_or(*step.part().table));
    steps.push_back(std::move(programs.step));
    evaluations.push_back(std::move(programs.evaluation));
  }
  for (const auto* together : {&steps, &evaluations}) {
    const std::string wrong = strategies::wrong_between(*together, serving);
    ENSURE(wrong.empty(), wrong);
  }
  return stages;
}

}  // namespace

TrainingSetup::TrainingSetup(const Point& of, Communicator& all)
    : point(of),
      comm(all),
      whole(*specs::model_table(point.training.model)),
      rank_step(point, comm.rank()),
      programs(programs_of(point.training.strategy, rank_step.input())),
      stages(stages_of(point, programs, comm.rank(), serving_of(comm.device()))),
      process_groups(std::make_shared<const ProcessGroups>(comm, stages.process_groups)) {}

void TrainingSetup::allocate(int64_t first_step) {
  const auto& t = point.training;
  const Precision types = precision_from(t.precision, t.reduce_dtype);
  use_tf32(t.precision == "tf32");
  search_convolutions(comm.device());
  model = make_model(t.model, types.compute, comm.device());
  model->keep(rank_step.part());
  model->fp8 = fp8_of(t.products);
  if (model->fp8 && t.precision == "bf16" && has_fp8_products(comm.device()) && loads_kernels())
    model->fp8->kernels = fused_kernels(comm.device());
  if (t.kernels == "fused") model->fused = fused_kernels(comm.device());
  model->splits_backward = programs.step.splits_backward();
  if (model->fused) model->fused->adds_gradients = !model->splits_backward;
  const StateContext context{*model,       comm, t.optimizer, point.seed, types, specs::mesh_of(point),
                             stages.tables};
  state = std::make_unique<TrainingState>(context, std::move(programs), process_groups);
  guard = std::make_unique<GradientGuard>(t.clip_norm, t.precision == "fp16", comm.device());
  executor = std::make_unique<Executor>(*state, *guard, point.seed, first_step);
  if (t.graph) executor->use_graphs();
}

}  // namespace shardmark
