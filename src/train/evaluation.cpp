// Forward alone, batch by batch.
#include "train/evaluation.h"

#include <c10/core/GradMode.h>

#include "device/device.h"

namespace shardmark {
namespace {

// What this rank has seen.
struct Sums {
  double loss = 0, hits = 0, targets = 0;

  void add(const at::Tensor& logits, const at::Tensor& wanted) {
    const auto count = static_cast<double>(wanted.numel());
    loss += item<double>(at::cross_entropy_loss(logits.to(at::kDouble), wanted)) * count;
    hits += item<double>(logits.argmax(1).eq(wanted).sum());
    targets += count;
  }
};

}  // namespace

// A rank that fails takes part in what is left without computing, as in training: executor/executor.h, Note
// [Draining].
Evaluation evaluate(Model& model, Executor& executor, Communicator& comm, const HostGroup& group,
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
    executor.attempt([&] { batch = source.fetch(samples); });
    const at::Tensor targets = std::exchange(batch.targets, {});  // asks for logits
    const at::Tensor logits = executor.evaluate(batch);
    if (counts) executor.attempt([&] { sums.add(logits, targets.to(comm.device()).flatten()); });
  }
  model.training = true;
  model.draws = draws;
  const double loss = group.sum(sums.loss), hits = group.sum(sums.hits), targets = group.sum(sums.targets);
  return {loss / targets, hits / targets};
}

}  // namespace shardmark
