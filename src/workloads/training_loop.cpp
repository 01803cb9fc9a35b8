// Blocks forward, blocks backward, step.
#include "workloads/training_loop.h"

#include <c10/core/GradMode.h>

#include "base/exit_status.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/lost_gpu.h"
#include "device/device.h"
#include "device/meter.h"

namespace shardmark {
namespace {

using Moment = laws::Moment::What;

void note(Flight& flight, Moment what, int64_t index) {
  switch (what) {
    case Moment::data:
      return flight.stage("data");
    case Moment::forward:
      return flight.block("forward", index);
    case Moment::backward:
      return flight.block("backward", index);
    default:
      return flight.stage("update");
  }
}

}  // namespace

StepResult TrainingLoop::step(const std::function<Batch()>& next_batch, bool wants_norm) {
  try {
    return run_step(next_batch, wants_norm);
  } catch (const c10::OutOfMemoryError& error) {
    if (options_.num_ranks == 1) throw;
    log_line(std::string("a GPU's memory ran out where the other ranks wait for this one: ") +
             error.what_without_backtrace());
    MpiSession::abort_world(kSystem);
  }
}

StepResult TrainingLoop::run_step(const std::function<Batch()>& next_batch, bool wants_norm) {
  clock_.begin_step();
  if (flight_ != nullptr) flight_->step();
  StepResult result;
  for (micro_batch_ = 0; micro_batch_ < options_.accumulation; ++micro_batch_) {
    clock_.enter(Phase::data);
    tell(Moment::data);
    Batch batch;
    attempt([&] { batch = next_batch(); });

    clock_.enter(Phase::forward);
    strategy_.begin_micro_batch(micro_batch_, /*last=*/micro_batch_ + 1 == options_.accumulation);
    const at::Tensor loss = forward(batch);

    clock_.enter(Phase::backward);
    backward(loss, batch);
    attempt([&] {
      const at::Tensor part = loss.detach() / static_cast<double>(options_.accumulation);
      result.loss = result.loss.defined() ? result.loss + part : part;
    });
  }
  strategy_.reduce();

  clock_.enter(Phase::optimizer);
  tell(Moment::update);
  if (wants_norm || guard_.needs_norm()) result.gradient_norm = guard_.inspect(strategy_.gradient_squares());
  strategy_.update(guard_.control());
  guard_.after_update();
  attempt([] { meter::throw_on_excess(); });
  ++step_;
  if (!result.loss.defined()) result.loss = at::full({}, std::nan(""));
  return result;
}

at::Tensor TrainingLoop::forward(const Batch& batch) {
  const auto& blocks = model_.blocks();
  inputs_.assign(blocks.size(), {});
  outputs_.assign(blocks.size(), {});
  at::Tensor h = batch.inputs;
  for (size_t b = 0; b < blocks.size(); ++b) {
    strategy_.before_forward(static_cast<int64_t>(b));
    tell(Moment::forward, static_cast<int64_t>(b));
    attempt([&] {
      inputs_[b] = h.detach();
      if (b > 0) inputs_[b].requires_grad_(true);
      const c10::AutoGradMode graph(!is_checkpointed(b));
      h = outputs_[b] = run_block(b, batch);
    });
    strategy_.after_forward(static_cast<int64_t>(b));
  }
  return h;
}

at::Tensor TrainingLoop::run_block(size_t block, const Batch& batch) {
  if (model_.draws) seed_generator(model_.device(), hash_of(options_.random_key, step_, micro_batch_, block));
  return model_.blocks()[block].forward(inputs_[block], batch);
}

// The last block's backward follows its forward at once: nothing is saved by running it again.
bool TrainingLoop::is_checkpointed(size_t block) const {
  const auto every = static_cast<size_t>(options_.checkpointing);
  return every > 0 && (block + 1) % every == 0 && block + 1 < model_.blocks().size();
}

void TrainingLoop::backward(const at::Tensor& loss, const Batch& batch) {
  at::Tensor gradient;
  attempt([&] {
    gradient = at::full_like(loss, strategy_.gradient_scale());
    if (guard_.loss_scale().defined()) gradient.mul_(guard_.loss_scale());
  });
  for (size_t b = model_.blocks().size(); b-- > 0;) {
    strategy_.before_backward(static_cast<int64_t>(b));
    tell(Moment::backward, static_cast<int64_t>(b));
    attempt([&] {
      if (is_checkpointed(b)) {
        model_.recomputing = true;
        outputs_[b] = run_block(b, batch);
        model_.recomputing = false;
      }
      torch::autograd::backward({outputs_[b]}, {gradient});
      gradient = inputs_[b].grad();
      outputs_[b].reset();  // frees the block's activations
      inputs_[b].reset();
    });
    strategy_.after_backward(static_cast<int64_t>(b));
  }
}

void TrainingLoop::tell(Moment what, int64_t index) {
  if (flight_ != nullptr) note(*flight_, what, index);
  if (observer_ != nullptr) observer_->at(what, index);
}

void TrainingLoop::attempt(const std::function<void()>& compute) {
  if (failure_) return;
  const meter::Strict strict;  // device/meter.h, Note [Where memory may run out]
  try {
    compute();
  } catch (const std::exception& error) {
    end_job_if_gpu_is_lost(error.what());
    // Statistics over all ranks are summed inside a block, where a draining rank would be missing.
    if (model_.num_ranks > 1) {
      log_line(std::string("a rank failed inside a block with synchronised batch norm: ") + error.what());
      MpiSession::abort_world(kSystem);
    }
    failure_ = std::current_exception();
    inputs_.assign(inputs_.size(), {});  // room for the rest of the step
    outputs_.assign(outputs_.size(), {});
  }
}

}  // namespace shardmark
