// Builds what a training point describes.
#include "runner/workloads/training_setup.h"

#include "base/hash.h"
#include "device/device.h"
#include "runner/workloads/reference.h"

namespace shardmark {

TrainingSetup::TrainingSetup(const Point& point, Communicator& comm, PhaseClock& clock, int64_t first_step) {
  const auto& t = point.training;
  if (has_synchronised_statistics(point) && comm.size() > 1) statistics_comm = comm.split(0, comm.rank());
  const Precision types = precision_from(t.precision, t.reduce_dtype);
  use_tf32(t.precision == "tf32");
  search_convolutions(comm.device());
  model = make_model(t.model, types.compute, comm.device());
  if (statistics_comm) {
    statistics_comm->count_in(comm);
    model->num_ranks = comm.size();
    model->sum_over_ranks = [this](const at::Tensor& sums) {
      if (executor->ablation() != Ablation::compute_only)
        statistics_comm->all_reduce(sums, ReduceOp::sum).wait();
    };
  }
  state = std::make_unique<TrainingState>(StateContext{*model, comm, t.strategy, t.optimizer, t.accumulation,
                                                       point.seed, types, t.checkpointing});
  guard = std::make_unique<GradientGuard>(t.clip_norm, t.precision == "fp16", comm.device());
  executor = std::make_unique<Executor>(
      *state, clock, *guard, ExecutorOptions{hash_of(point.seed, comm.rank()), first_step, comm.size()});
}

}  // namespace shardmark
