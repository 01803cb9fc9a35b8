// One instruction after the other.
#include "executor/executor.h"

#include <c10/core/GradMode.h>

#include "base/exit_status.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/nccl/lost_gpu.h"
#include "device/device.h"
#include "device/meter.h"

namespace shardmark {

using strategies::Instruction;

StepResult Executor::step(const std::function<Batch()>& next_batch, bool wants_norm) {
  clock_.begin_step();
  if (heartbeat_ != nullptr) heartbeat_->step();
  result_ = {};
  micro_batch_ = -1;
  try {
    execute(state_.step(wants_norm || guard_.needs_norm()), next_batch);
  } catch (const c10::OutOfMemoryError& error) {
    if (options_.num_ranks == 1) throw;
    log_line(std::string("out of GPU memory while other ranks wait for this one: ") +
             error.what_without_backtrace());
    MpiSession::abort_world(kSystem);
  }
  attempt([] { meter::throw_on_excess(); });
  ++step_;
  for (at::Tensor* value : {&result_.loss, &result_.gradient_norm})
    if (failure_) *value = at::full({}, std::nan(""));
  return std::exchange(result_, {});
}

at::Tensor Executor::evaluate(const Batch& batch) {
  evaluates_ = true;
  execute(state_.evaluation(), [&] { return batch; });
  evaluates_ = false;
  batch_ = {};
  return std::exchange(activation_, {});
}

void Executor::set_ablation(Ablation ablation) {
  if (last_ != nullptr) last_->wait_all();
  ablation_ = ablation;
}

void Executor::execute(BoundProgram& bound, const std::function<Batch()>& next_batch) {
  if (last_ != nullptr && last_ != &bound) last_->wait_all();
  last_ = &bound;
  const std::vector<Instruction>& instructions = bound.program().instructions;
  StepRecorder* const recorder = evaluates_ ? nullptr : recorder_;  // an evaluation is no step
  if (recorder != nullptr) recorder->begin_step(bound.program());
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    if (recorder != nullptr) recorder->begin_instruction(/*reads_memory=*/instruction.is_compute());
    if (instruction.is_communication()) {
      const bool happens =
          ablation_ == Ablation::none ? !bound.is_inside_block(i) : ablation_ == Ablation::communication_only;
      if (happens) bound.communicate(i);
    } else if (ablation_ == Ablation::communication_only) {
      continue;
    } else if (instruction.is_compute()) {
      if (ablation_ == Ablation::none) bound.poll();  // what has just started moves before a block computes
      compute(instruction.what, instruction.index, next_batch);
      if (ablation_ == Ablation::none) bound.poll();
    } else if (instruction.what == What::apply) {
      apply(bound);
    } else if (!failure_) {
      bound.run_locally(i);
    }
  }
  if (recorder != nullptr) recorder->end_step();
}

void Executor::compute(What what, int64_t index, const std::function<Batch()>& next_batch) {
  const auto block = static_cast<size_t>(index);
  switch (what) {
    case What::data:
      return load(next_batch);
    case What::forward:
      return forward(block);
    case What::backward:
      return backward(block);
    default:
      enter(Phase::optimizer);
      return tell(What::update, 0);
  }
}

void Executor::load(const std::function<Batch()>& next_batch) {
  ++micro_batch_;
  enter(Phase::data);
  tell(What::data, 0);
  attempt([&] {
    batch_ = next_batch();
    activation_ = batch_.inputs;
  });
  inputs_.assign(model_.blocks().size(), {});
  outputs_.assign(model_.blocks().size(), {});
  enter(Phase::forward);
}

void Executor::forward(size_t block) {
  tell(What::forward, static_cast<int64_t>(block));
  attempt([&] {
    inputs_[block] = activation_.detach();
    if (block > 0) inputs_[block].requires_grad_(!evaluates_);
    const c10::AutoGradMode graph(!evaluates_ && !is_checkpointed(block));
    activation_ = run_block(block);
    if (evaluates_)
      inputs_[block].reset();
    else
      outputs_[block] = activation_;
  });
  if (block + 1 == model_.blocks().size()) enter(Phase::backward);
}

// The last block's backward begins with the gradient of the loss.
void Executor::backward(size_t block) {
  tell(What::backward, static_cast<int64_t>(block));
  const bool begins = block + 1 == model_.blocks().size();
  attempt([&] {
    if (begins) {
      gradient_ = at::full_like(activation_, state_.program().gradient_scale);
      if (guard_.loss_scale().defined()) gradient_.mul_(guard_.loss_scale());
    }
    if (is_checkpointed(block)) {
      model_.recomputing = true;
      outputs_[block] = run_block(block);
      model_.recomputing = false;
    }
    torch::autograd::backward({outputs_[block]}, {gradient_});
    gradient_ = inputs_[block].grad();
    outputs_[block].reset();  // frees the block's activations
    inputs_[block].reset();
  });
  if (block > 0) return;
  attempt([&] {
    const at::Tensor part = activation_.detach() / static_cast<double>(options_.accumulation);
    result_.loss = result_.loss.defined() ? result_.loss + part : part;
    activation_.reset();
  });
  batch_ = {};
}

// The norm is inspected on every rank that computes: its sum is complete.
void Executor::apply(const BoundProgram& bound) {
  if (failure_) return;
  if (&bound == &state_.step(/*with_norm=*/true)) result_.gradient_norm = guard_.inspect(state_.squares());
  state_.optimizer().step(guard_.control());
  guard_.after_update();
}

at::Tensor Executor::run_block(size_t block) {
  if (model_.draws) seed_generator(model_.device(), hash_of(options_.random_key, step_, micro_batch_, block));
  return model_.blocks()[block].forward(inputs_[block], batch_);
}

bool Executor::is_checkpointed(size_t block) const {
  return strategies::is_recomputed(options_.checkpointing, static_cast<int64_t>(block),
                                   std::ssize(model_.blocks()));
}

// An evaluation is no part of any step's time.
void Executor::enter(Phase phase) {
  if (!evaluates_) clock_.enter(phase);
}

void Executor::tell(What what, int64_t index) {
  if (evaluates_) return;
  if (timer_ != nullptr) timer_->begin(what, index);
  if (heartbeat_ == nullptr) return;
  if (what == What::forward || what == What::backward)
    heartbeat_->block(what == What::forward ? "forward" : "backward", index);
  else
    heartbeat_->stage(what == What::data ? "data" : "update");
}

void Executor::attempt(const std::function<void()>& compute) {
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
    activation_.reset();
    gradient_.reset();
  }
}

}  // namespace shardmark
