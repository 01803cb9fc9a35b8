// Forward only: blocks, and what the strategy does around them.
#include "training/evaluation.h"

#include <c10/core/GradMode.h>

#include <exception>

#include "comm/lost_gpu.h"
#include "device/meter.h"
#include "strategies/state.h"

namespace shardmark {
namespace {

// What this rank has seen. A rank that fails takes part in what is left without computing, as in training:
// workloads/training_loop.h, Note [Draining].
class Sums {
 public:
  double loss = 0, hits = 0, targets = 0;
  std::exception_ptr failure;

  template <class Compute>
  void attempt(const Compute& compute) {
    if (failure) return;
    const meter::Strict strict;
    try {
      compute();
    } catch (const std::exception& error) {
      end_job_if_gpu_is_lost(error.what());
      failure = std::current_exception();
    }
  }

  void add(const at::Tensor& logits, const at::Tensor& wanted) {
    const auto count = static_cast<double>(wanted.numel());
    loss += at::cross_entropy_loss(logits.to(at::kDouble), wanted).item<double>() * count;
    hits += logits.argmax(1).eq(wanted).sum().item<double>();
    targets += count;
  }
};

at::Tensor logits_of(const Model& model, Strategy& strategy, const at::Tensor& inputs, Sums& sums) {
  strategy.begin_micro_batch(0, /*last=*/false);
  const Batch batch{inputs, {}};
  at::Tensor h = inputs;
  for (size_t b = 0; b < model.blocks().size(); ++b) {
    strategy.before_forward(static_cast<int64_t>(b));
    sums.attempt([&] { h = model.blocks()[b].forward(h, batch); });
    strategy.after_forward(static_cast<int64_t>(b));
  }
  return h;
}

}  // namespace

Evaluation evaluate(Model& model, Strategy& strategy, Communicator& comm, const HostGroup& group,
                    const DataSource& source, int64_t batch_size, int64_t most_batches) {
  broadcast_buffers(model, comm);
  const c10::NoGradGuard no_grad;
  model.training = false;
  const bool draws = std::exchange(model.draws, false);
  Sums sums;
  const int64_t end = source.size() + source.num_held_out(), together = comm.size() * batch_size;
  // Every rank goes through equally many rounds; one that has nothing left computes along without counting.
  for (int64_t round = 0; round < most_batches && source.size() + round * together < end; ++round) {
    const int64_t first = source.size() + round * together + comm.rank() * batch_size;
    std::vector<Draw> samples;
    for (int64_t index = first; index < std::min(end, first + batch_size); ++index)
      samples.push_back({index});
    const bool counts = !samples.empty();
    if (!counts) samples.push_back({source.size()});
    Batch batch;
    sums.attempt([&] {
      batch = source.fetch(samples);
      batch.inputs = batch.inputs.to(comm.device());
    });
    const at::Tensor logits = logits_of(model, strategy, batch.inputs, sums);
    if (counts) sums.attempt([&] { sums.add(logits, batch.targets.to(comm.device()).flatten()); });
  }
  model.training = true;
  model.draws = draws;
  const double loss = group.sum(sums.loss), hits = group.sum(sums.hits), targets = group.sum(sums.targets);
  if (sums.failure) std::rethrow_exception(sums.failure);
  return {loss / targets, hits / targets};
}

}  // namespace shardmark
