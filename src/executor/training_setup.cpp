// Builds what a training point describes.
#include "executor/training_setup.h"

#include "device/device.h"
#include "specs/specs.h"

namespace shardmark {

namespace {

// Of this rank.
Programs programs_of(const Point& point, const Communicator& comm) {
  const auto& t = point.training;
  const auto table = specs::model_spec(t.model.name).table(t.model.options);
  strategies::StepInput input = strategies::step_input(point, table);
  input.ranks = comm.size();
  input.rank = comm.rank();
  return programs_of(t.strategy, input);
}

}  // namespace

TrainingSetup::TrainingSetup(const Point& of, Communicator& all)
    : point(of),
      comm(all),
      programs(programs_of(point, comm)),
      teams(std::make_shared<const Teams>(comm, programs.teams())) {}

void TrainingSetup::allocate(int64_t first_step) {
  const auto& t = point.training;
  const Precision types = precision_from(t.precision, t.reduce_dtype);
  use_tf32(t.precision == "tf32");
  search_convolutions(comm.device());
  model = make_model(t.model, types.compute, comm.device());
  const StateContext context{*model, comm, t.optimizer, point.seed, types};
  state = std::make_unique<TrainingState>(context, std::move(programs), teams);
  guard = std::make_unique<GradientGuard>(t.clip_norm, t.precision == "fp16", comm.device());
  executor = std::make_unique<Executor>(*state, *guard, point.seed, first_step);
}

}  // namespace shardmark
