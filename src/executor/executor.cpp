// One instruction after the other.
#include "executor/executor.h"

#include <c10/core/GradMode.h>

#include "base/hash.h"
#include "comm/in_step.h"
#include "comm/nccl/lost_gpu.h"
#include "device/device.h"
#include "device/meter.h"

namespace shardmark {

using strategies::Instruction;

template <class Body>
void Executor::together(const Body& body) {
  in_step(
      state_.comm().size(), [this] { return where(); }, body);
}

Executor::Executor(TrainingState& state, GradientGuard& guard, int64_t seed, int64_t first_step)
    : state_(state),
      model_(state.model()),
      guard_(guard),
      random_key_(hash_of(seed, state.comm().rank())),
      step_(first_step),
      recorder_(state.comm().device()) {
  model_.sum_over_ranks = [this](const at::Tensor& values) { sum_over_ranks(values); };
}

StepResult Executor::step(const std::function<Batch()>& next_batch, bool wants_norm) {
  if (heartbeat_ != nullptr) heartbeat_->step();
  result_ = {};
  together([&] { execute(state_.step(wants_norm || guard_.needs_norm()), next_batch); });
  attempt([] { meter::throw_on_excess(); });
  ++step_;
  for (at::Tensor* value : {&result_.loss, &result_.gradient_norm})
    if (failure_) *value = at::full({}, std::nan(""));
  return std::exchange(result_, {});
}

at::Tensor Executor::evaluate(const Batch& batch) {
  evaluates_ = true;
  together([&] { execute(state_.evaluation(), [&] { return batch; }); });
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
  StepRecorder* const recorder = evaluates_ ? nullptr : &recorder_;  // an evaluation is no step
  StepRecorder* const details = evaluates_ ? nullptr : details_;
  if (recorder != nullptr) recorder->begin_step(bound.program());
  if (details != nullptr) details->begin_step(bound.program());
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    if (recorder != nullptr) recorder->begin_instruction(i);
    if (details != nullptr) details->begin_instruction(i);
    if (instruction.is_communication()) {
      const bool happens =
          ablation_ == Ablation::none ? !bound.is_inside_block(i) : ablation_ == Ablation::communication_only;
      if (happens) bound.communicate(i);
    } else if (ablation_ == Ablation::communication_only) {
      continue;
    } else if (instruction.is_compute()) {
      if (ablation_ == Ablation::none) bound.poll();  // what has just started moves before a block computes
      bound.begin_block(i);
      compute(instruction, next_batch);
      if (ablation_ == Ablation::none) {
        bound.end_block();
        bound.poll();
      }
    } else if (instruction.what == What::apply) {
      apply(bound);
    } else if (!failure_) {
      bound.run_locally(i);
    }
  }
  if (details != nullptr) details->end();
}

void Executor::compute(const Instruction& instruction, const std::function<Batch()>& next_batch) {
  note(instruction.what, instruction.index);
  switch (instruction.what) {
    case What::data:
      return load(next_batch);
    case What::forward:
      return forward(instruction);
    case What::recompute:
      return recompute(instruction);
    case What::backward:
      return backward(static_cast<size_t>(instruction.index));
    default:
      return;  // the update's other instructions follow
  }
}

void Executor::load(const std::function<Batch()>& next_batch) {
  attempt([&] {
    batch_ = model_.prepared(next_batch());
    activation_ = batch_.inputs;
  });
  inputs_.assign(model_.blocks().size(), {});
  outputs_.assign(model_.blocks().size(), {});
}

void Executor::forward(const Instruction& instruction) {
  const auto block = static_cast<size_t>(instruction.index);
  attempt([&] {
    inputs_[block] = activation_.detach();
    if (block > 0) inputs_[block].requires_grad_(!evaluates_);
    const c10::AutoGradMode graph(instruction.keeps_activations);
    activation_ = run_block(instruction);
    if (evaluates_)
      inputs_[block].reset();
    else
      outputs_[block] = activation_;
  });
}

void Executor::recompute(const Instruction& instruction) {
  attempt([&] {
    model_.recompute = true;
    outputs_[static_cast<size_t>(instruction.index)] = run_block(instruction);
    model_.recompute = false;
  });
}

// The last block's backward begins with the gradient of the loss.
void Executor::backward(size_t block) {
  const bool begins = block + 1 == model_.blocks().size();
  attempt([&] {
    if (begins) {
      gradient_ = at::full_like(activation_, state_.program().gradient_scale);
      if (guard_.loss_scale().defined()) gradient_.mul_(guard_.loss_scale());
    }
    torch::autograd::backward({outputs_[block]}, {gradient_});
    gradient_ = inputs_[block].grad();
    outputs_[block].reset();  // frees the block's activations
    inputs_[block].reset();
  });
  if (block > 0) return;
  attempt([&] {
    const at::Tensor part = activation_.detach() / static_cast<double>(state_.program().micro_batches);
    result_.loss = result_.loss.defined() ? result_.loss + part : part;
    activation_.reset();
  });
  batch_ = {};
}

// The norm is inspected on every rank that computes: its sum is complete.
void Executor::apply(const BoundProgram& bound) {
  if (failure_) return;
  if (bound.program().norm) result_.gradient_norm = guard_.inspect(state_.squares());
  state_.optimizer().step(guard_.control());
  guard_.after_update();
}

at::Tensor Executor::run_block(const Instruction& instruction) {
  const auto block = static_cast<size_t>(instruction.index);
  if (model_.draws)
    seed_generator(model_.device(), hash_of(random_key_, step_, instruction.micro_batch, block));
  return model_.blocks()[block].forward(inputs_[block], batch_);
}

void Executor::note(What what, int64_t index) {
  if (evaluates_ || heartbeat_ == nullptr) return;
  switch (what) {
    case What::forward:
      return heartbeat_->block("forward", index);
    case What::recompute:
      return heartbeat_->block("forward again", index);
    case What::backward:
      return heartbeat_->block("backward", index);
    default:
      return heartbeat_->stage(what == What::data ? "data" : "update");
  }
}

void Executor::sum_over_ranks(const at::Tensor& values) {
  if (state_.comm().size() == 1 || ablation_ == Ablation::compute_only) return;
  together([&] { last_->call_inside_block(values); });
}

std::string Executor::where() const { return heartbeat_ == nullptr ? "a step" : heartbeat_->place(); }

void Executor::attempt(const std::function<void()>& compute) {
  if (failure_) return;
  const meter::Strict strict;  // device/meter.h, Note [Where memory may run out]
  try {
    compute();
  } catch (const std::exception& error) {
    end_job_if_gpu_is_lost(error.what());
    failure_ = std::current_exception();
    inputs_.assign(inputs_.size(), {});  // room for the rest of the step
    outputs_.assign(outputs_.size(), {});
    activation_.reset();
    gradient_.reset();
  }
}

}  // namespace shardmark
