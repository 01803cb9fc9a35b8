// Executes a program: one instruction after the other, or as CUDA graphs.
#include "executor/executor.h"

namespace shardmark {

using strategies::Instruction;

void Executor::execute(BoundProgram& bound, const std::function<Batch()>& next_batch) {
  if (last_ != nullptr && last_ != &bound) last_->wait_all();
  last_ = &bound;
  by_graphs_ = graphs_ && !evaluates_ && details_ == nullptr && ablation_ == Ablation::none;
  if (by_graphs_) return execute_as_graphs(bound, next_batch);
  const std::vector<Instruction>& instructions = bound.program().instructions;
  StepRecorder* const recorder = evaluates_ ? nullptr : &recorder_;  // an evaluation is not recorded
  StepRecorder* const details = evaluates_ ? nullptr : details_;
  if (recorder != nullptr) recorder->begin_step(bound.program());
  if (details != nullptr) details->begin_step(bound.program());
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (recorder != nullptr) recorder->begin_instruction(i);
    if (details != nullptr) details->begin_instruction(i);
    execute_one(bound, i, next_batch);
  }
  if (details != nullptr) details->end();
}

// Executes one instruction, as far as the ablation allows. Blocks make the calls inside them on their own.
// Only with communication_only, where no block computes, are these calls made here.
void Executor::execute_one(BoundProgram& bound, size_t i, const std::function<Batch()>& next_batch) {
  const Instruction& instruction = bound.program().instructions[i];
  if (instruction.is_communication()) {
    const bool happens =
        ablation_ == Ablation::none ? !bound.is_inside_block(i) : ablation_ == Ablation::communication_only;
    if (happens) bound.communicate(i);
  } else if (ablation_ == Ablation::communication_only) {
    return;
  } else if (instruction.is_compute()) {
    // What has just been started moves before the block computes.
    if (ablation_ == Ablation::none) bound.poll();
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

// A rank that has failed does not compute, and therefore launches no graphs.
void Executor::execute_as_graphs(BoundProgram& bound, const std::function<Batch()>& next_batch) {
  recorder_.begin_step(bound.program());
  const auto& stretches = graphs_->begin_step(bound.program());
  for (size_t s = 0; s < stretches.size(); ++s) {
    const StepGraphs::Stretch& stretch = stretches[s];
    const Instruction& first = bound.program().instructions[stretch.begin];
    recorder_.begin_instruction(stretch.begin);
    const auto body = [&] {
      for (size_t i = stretch.begin; i < stretch.end; ++i) execute_one(bound, i, next_batch);
      return !failure_;
    };
    if (stretch.loads) {
      body();
    } else if (!failure_) {
      if (first.is_compute()) note(first);
      graphs_->run(s, body);
    }
  }
  const auto results = graphs_->end_step({result_.loss, result_.gradient_norm});
  result_ = {results[0], results[1]};
}

}  // namespace shardmark
