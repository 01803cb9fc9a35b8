// Runs forward passes batch by batch and adds up loss and accuracy.
#include "train/evaluation.h"

#include <c10/core/GradMode.h>

#include "device/device.h"

namespace shardmark {
namespace {

// The sums of what this rank has seen.
struct Sums {
  double loss = 0, hits = 0, targets = 0;

  void add(const at::Tensor& scores) {  // from target_scores() in models/layers.h
    const at::Tensor sums = scores.sum(0).cpu();
    loss += sums[0].item<double>();
    hits += sums[1].item<double>();
    targets += static_cast<double>(scores.size(0));
  }
};

}  // namespace

// As in training, a rank that fails takes part in the remaining collectives without computing:
// executor/executor.h, Note [Draining].
Evaluation evaluate(Model& model, Executor& executor, Communicator& comm, const HostGroup& group,
                    const DataSource& source, int64_t batch_size, int64_t most_batches) {
  broadcast_buffers(model, executor.copies_comm());
  const c10::NoGradGuard no_grad;
  model.training = false;
  const bool draws = std::exchange(model.draws, false);
  Sums sums;
  const specs::Mesh& mesh = executor.mesh();
  const int64_t end = source.size() + source.num_held_out(), together = mesh.data * batch_size;
  // Every rank evaluates equally many batches of equal size, because blocks and pipeline messages contain
  // collectives. Samples that only fill up the last batch do not count.
  for (int64_t round = 0; round < most_batches && source.size() + round * together < end; ++round) {
    // Held-out samples have the numbers behind those to train on. In each round every copy of the model
    // takes the next batch_size of them, in the order of the copies. Ranks of one copy evaluate the same
    // samples.
    const int64_t first = source.size() + round * together + mesh.data_index_of(comm.rank()) * batch_size;
    const int64_t count = std::clamp<int64_t>(end - first, 0, batch_size);
    std::vector<Draw> samples;
    for (int64_t i = 0; i < batch_size; ++i) samples.push_back({i < count ? first + i : source.size()});
    Batch batch;
    executor.attempt([&] { batch = source.fetch(samples); });
    batch.wants_scores = true;
    const at::Tensor scores = executor.evaluate(batch);  // in a pipeline one stage has scores
    if (count > 0 && scores.defined())
      executor.attempt([&] { sums.add(scores.narrow(0, 0, scores.size(0) / batch_size * count)); });
  }
  model.training = true;
  model.draws = draws;
  const double loss = group.sum(sums.loss), hits = group.sum(sums.hits), targets = group.sum(sums.targets);
  return {loss / targets, hits / targets};
}

}  // namespace shardmark
