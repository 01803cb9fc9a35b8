// A training point put together.
#include "workloads/trainee.h"

#include "base/hash.h"
#include "device/device.h"
#include "workloads/reference.h"

namespace shardmark {

Trainee::Trainee(const Point& point, Communicator& comm, PhaseClock& clock, int64_t first_step) {
  const auto& t = point.training;
  if (has_synchronised_statistics(point) && comm.size() > 1) statistics_comm = comm.split(0, comm.rank());
  const Precision types = precision_from(t.precision, t.reduce_dtype);
  use_tf32(t.precision == "tf32");
  search_convolutions(comm.device());
  model = make_model(t.model, types.compute, comm.device());
  if (statistics_comm) {
    model->num_ranks = comm.size();
    model->sum_over_ranks = [statistics = statistics_comm.get()](const at::Tensor& sums) {
      statistics->all_reduce(sums, ReduceOp::sum).wait();
    };
  }
  strategy = make_strategy(
      t.strategy.name, {*model, comm, t.strategy.options, t.optimizer, t.accumulation, point.seed, types});
  guard = std::make_unique<GradientGuard>(t.clip_norm, t.precision == "fp16", comm.device());
  loop =
      std::make_unique<TrainingLoop>(*model, *strategy, clock, *guard,
                                     LoopOptions{t.accumulation, t.checkpointing,
                                                 hash_of(point.seed, comm.rank()), first_step, comm.size()});
}

}  // namespace shardmark
