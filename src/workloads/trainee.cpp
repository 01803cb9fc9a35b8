// A training point put together.
#include "workloads/trainee.h"

#include "workloads/reference.h"

namespace shardmark {

Trainee::Trainee(const Point& point, Communicator& comm, PhaseClock& clock) {
  const auto& t = point.training;
  if (has_synchronised_statistics(point) && comm.size() > 1) statistics_comm = comm.split(0, comm.rank());
  model = make_model(t.model, scalar_type(t.precision), comm.device());
  if (statistics_comm) {
    model->num_ranks = comm.size();
    model->sum_over_ranks = [statistics = statistics_comm.get()](const at::Tensor& sums) {
      statistics->all_reduce(sums, ReduceOp::sum).wait();
    };
  }
  strategy = make_strategy(t.strategy.name,
                           {*model, comm, t.strategy.options, t.optimizer, t.accumulation, point.seed});
  loop = std::make_unique<TrainingLoop>(*model, *strategy, clock, t.accumulation);
}

}  // namespace shardmark
