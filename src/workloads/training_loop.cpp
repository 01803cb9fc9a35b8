// Blocks forward, blocks backward, step.
#include "workloads/training_loop.h"

#include "base/log.h"

namespace shardmark {

at::Tensor TrainingLoop::step(const std::function<Batch()>& next_batch,
                              const std::function<void()>& before_update) {
  clock_.begin_step();
  at::Tensor sum;  // of the losses of the micro-batches
  for (int64_t i = 0; i < accumulation_; ++i) {
    clock_.enter(Phase::data);
    Batch batch;
    attempt([&] { batch = next_batch(); });

    clock_.enter(Phase::forward);
    strategy_.begin_micro_batch(i, /*last=*/i + 1 == accumulation_);
    const at::Tensor loss = forward(batch);

    clock_.enter(Phase::backward);
    backward(loss);
    attempt([&] { sum = sum.defined() ? sum + loss.detach() : loss.detach(); });
  }
  strategy_.reduce();
  if (before_update) before_update();

  clock_.enter(Phase::optimizer);
  strategy_.update();
  return sum.defined() ? sum / static_cast<double>(accumulation_) : at::full({}, std::nan(""));
}

at::Tensor TrainingLoop::forward(const Batch& batch) {
  const auto& blocks = model_.blocks();
  inputs_.assign(blocks.size(), {});
  outputs_.assign(blocks.size(), {});
  at::Tensor h = batch.inputs;
  for (size_t b = 0; b < blocks.size(); ++b) {
    strategy_.before_forward(static_cast<int64_t>(b));
    attempt([&] {
      inputs_[b] = h.detach();
      if (b > 0) inputs_[b].requires_grad_(true);
      h = outputs_[b] = blocks[b].forward(inputs_[b], batch);
    });
    strategy_.after_forward(static_cast<int64_t>(b));
  }
  return h;
}

void TrainingLoop::backward(const at::Tensor& loss) {
  at::Tensor gradient;
  attempt([&] { gradient = at::full_like(loss, strategy_.gradient_scale()); });
  for (size_t b = model_.blocks().size(); b-- > 0;) {
    strategy_.before_backward(static_cast<int64_t>(b));
    attempt([&] {
      torch::autograd::backward({outputs_[b]}, {gradient});
      gradient = inputs_[b].grad();
      outputs_[b].reset();  // frees the block's activations
      inputs_[b].reset();
    });
    strategy_.after_backward(static_cast<int64_t>(b));
  }
}

void TrainingLoop::attempt(const std::function<void()>& compute) {
  if (failure_) return;
  try {
    compute();
  } catch (const std::exception& error) {
    // Statistics over all ranks are summed inside a block, where a draining rank would be missing.
    if (model_.num_ranks > 1) {
      log_line(std::string("a rank failed inside a block with synchronised batch norm: ") + error.what());
      MpiSession::abort_world(EXIT_FAILURE);
    }
    failure_ = std::current_exception();
  }
}

}  // namespace shardmark
