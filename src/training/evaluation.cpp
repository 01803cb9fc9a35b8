// Forward only: blocks, and what the strategy does around them.
#include "training/evaluation.h"

#include <c10/core/GradMode.h>

#include "strategies/state.h"

namespace shardmark {
namespace {

at::Tensor logits_of(const Model& model, Strategy& strategy, const at::Tensor& inputs) {
  strategy.begin_micro_batch(0, /*last=*/false);
  const Batch batch{inputs, {}};
  at::Tensor h = inputs;
  for (size_t b = 0; b < model.blocks().size(); ++b) {
    strategy.before_forward(static_cast<int64_t>(b));
    h = model.blocks()[b].forward(h, batch);
    strategy.after_forward(static_cast<int64_t>(b));
  }
  return h;
}

}  // namespace

Evaluation evaluate(Model& model, Strategy& strategy, Communicator& comm, const HostGroup& group,
                    const DataSource& source, int64_t batch_size) {
  broadcast_buffers(model, comm);
  const c10::NoGradGuard no_grad;
  model.training = false;
  const bool draws = std::exchange(model.draws, false);
  double loss = 0, hits = 0, targets_seen = 0;
  const int64_t end = source.size() + source.num_held_out();
  // Every rank goes through equally many rounds; one that has nothing left computes along without counting.
  for (int64_t round = source.size(); round < end; round += comm.size() * batch_size) {
    const int64_t first = round + comm.rank() * batch_size;
    std::vector<Draw> draws;
    for (int64_t index = first; index < std::min(end, first + batch_size); ++index) draws.push_back({index});
    const bool counts = !draws.empty();
    if (!counts) draws.push_back({source.size()});
    const Batch batch = source.fetch(draws);
    const at::Tensor logits = logits_of(model, strategy, batch.inputs.to(comm.device()));
    if (!counts) continue;
    const at::Tensor targets = batch.targets.to(comm.device()).flatten();
    const auto count = static_cast<double>(targets.numel());
    loss += at::cross_entropy_loss(logits.to(at::kDouble), targets).item<double>() * count;
    hits += logits.argmax(1).eq(targets).sum().item<double>();
    targets_seen += count;
  }
  model.training = true;
  model.draws = draws;
  const double all = group.sum(targets_seen);
  return {group.sum(loss) / all, group.sum(hits) / all};
}

}  // namespace shardmark
