// Steps and evaluations: the loop over instructions, one after the other or as CUDA graphs, and what each
// instruction computes.
#include "executor/executor.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <utility>

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
      random_key_(state.key_of_draws(seed)),
      step_(first_step),
      recorder_(state.comm().device()) {
  model_.start_collective = [this](auto... call) { return start_inside_block(call...); };
  model_.poll = [this] {
    if (ablation_ == Ablation::none) last_->poll();
  };
  model_.gather_counts = [this](const at::Tensor& own, int64_t ranks, int64_t index) {
    return gather_counts(own, ranks, index);
  };
  model_.loss_gradient = [this](at::ScalarType type) {
    const auto options = at::TensorOptions(model_.device()).dtype(type);
    const at::Tensor gradient = at::full({}, state_.program().gradient_scale, options);
    return guard_.loss_scale().defined() ? gradient.mul_(guard_.loss_scale()) : gradient;
  };
}

StepResult Executor::step(const std::function<Batch()>& next_batch, bool wants_norm) {
  if (heartbeat_ != nullptr) heartbeat_->step();
  result_ = {};
  together([&] { execute(state_.step(wants_norm || guard_.needs_norm()), next_batch); });
  attempt([] { meter::throw_on_excess(); });
  ++step_;
  if (state_.program().chunks.back().sends) result_.loss = at::zeros({}, at::kDouble);
  for (at::Tensor* value : {&result_.loss, &result_.gradient_norm})
    if (failure_) *value = at::full({}, std::nan(""));
  return std::exchange(result_, {});
}

at::Tensor Executor::evaluate(const Batch& batch) {
  evaluates_ = true;
  together([&] { execute(state_.evaluation(), [&] { return batch; }); });
  evaluates_ = false;
  const auto all = std::exchange(micro_batches_, {});
  return last_->program().chunks.back().sends ? at::Tensor() : all.at(0).activation;
}

void Executor::set_ablation(Ablation ablation) {
  if (last_ != nullptr) last_->wait_all();
  ablation_ = ablation;
}

void Executor::execute(BoundProgram& bound, const std::function<Batch()>& next_batch) {
  // A step may leave calls in flight for the next step of the same program, such as the gathers of updated
  // parameters. Another program knows nothing of them, so that they are waited for here.
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

void Executor::compute(const Instruction& instruction, const std::function<Batch()>& next_batch) {
  note(instruction);
  switch (instruction.what) {
    case What::data:
      return load(instruction.micro_batch, next_batch);
    case What::forward:
      return forward(instruction);
    case What::recompute:
      return recompute(instruction);
    case What::backward:
      return backward(instruction);
    case What::backward_input:
      return backward_input(instruction);
    case What::backward_weight:
      return backward_weight(instruction);
    default:
      return;  // the other instructions of the update follow
  }
}

void Executor::load(int64_t number, const std::function<Batch()>& next_batch) {
  MicroBatch& micro_batch = micro_batches_[number];
  attempt([&] {
    micro_batch.batch = model_.prepared(next_batch());
    if (by_graphs_) micro_batch.batch = graphs_->at_its_place(number, micro_batch.batch);
    micro_batch.activation = micro_batch.batch.inputs;
  });
  micro_batch.inputs.assign(model_.blocks().size(), {});
  micro_batch.outputs.assign(model_.blocks().size(), {});
}

bool Executor::has_loss(const Instruction& instruction) const {
  const auto& program = last_->program();
  return instruction.from.buffer < 0 && !program.chunks.back().sends &&
         instruction.index + 1 == program.chunks.back().end;
}

bool Executor::sends_output(const Instruction& instruction) const {
  const auto& chunks = last_->program().chunks;
  return std::any_of(chunks.begin(), chunks.end(), [&](const specs::Chunk& chunk) {
    return chunk.sends && instruction.index + 1 == chunk.end;
  });
}

// The received input in the shape of the model's table, whose first dimension is multiplied by the number of
// samples.
at::Tensor Executor::received(const Instruction& instruction) const {
  std::vector<int64_t> shape = model_.table().blocks[static_cast<size_t>(instruction.index)].input_shape;
  shape.front() *= micro_batches_.at(instruction.micro_batch).batch.num_samples();
  const at::Tensor slot = state_.memory().at(instruction.from);
  return slot.narrow(0, 0, c10::multiply_integers(shape)).view(shape);
}

void Executor::send(const Instruction& instruction, const at::Tensor& value) const {
  state_.memory().at(instruction.to).narrow(0, 0, value.numel()).view(value.sizes()).copy_(value);
}

// Frees the memory of an output that was sent. Backward needs only its place in the autograd graph, unless
// the block has saved the output (as a ReLU does), in which case its storage has another owner. Source:
// Narayanan et al., SC 2021; Megatron-LM's deallocate_output_tensor.
void Executor::free_unless_needed(const at::Tensor& output) {
  const size_t own = output.is_view() ? 2 : 1;  // a view and its base
  if (output.storage().use_count() == own) output.storage().unsafeGetStorageImpl()->reset();
}

void Executor::forward(const Instruction& instruction) {
  const auto block = static_cast<size_t>(instruction.index);
  MicroBatch& micro_batch = micro_batches_[instruction.micro_batch];
  attempt([&] {
    // Each block has an autograd graph of its own: its input is a leaf, cut off from the block before,
    // whose gradient is handed on by output_gradient(). The first block of the model needs no gradient of
    // its input. Without keeps_activations no graph is recorded: the block runs again before its backward.
    const bool is_first = last_->program().chunks.front().first_block + instruction.index == 0;
    at::Tensor& input = micro_batch.inputs[block];
    input = instruction.from.buffer >= 0 ? received(instruction) : micro_batch.activation.detach();
    if (!is_first) input.requires_grad_(!evaluates_);
    const c10::AutoGradMode graph(instruction.keeps_activations);
    micro_batch.activation = run_block(instruction);
    if (!evaluates_) micro_batch.outputs[block] = micro_batch.activation;
    if (instruction.to.buffer >= 0) {
      send(instruction, micro_batch.activation.detach());
      free_unless_needed(micro_batch.activation);
      micro_batch.activation.reset();
    }
    if (evaluates_) input.reset();
  });
}

// Runs forward of a block again. model_.recompute tells the block that the running statistics of batch norm
// have been updated already.
void Executor::recompute(const Instruction& instruction) {
  const bool was_sent = sends_output(instruction);
  attempt([&] {
    model_.recompute = true;
    at::Tensor& output =
        micro_batches_[instruction.micro_batch].outputs[static_cast<size_t>(instruction.index)];
    output = run_block(instruction);
    if (was_sent) free_unless_needed(output);
    model_.recompute = false;
  });
}

// The gradient of the block's output: received from the stage with the next part of the model, left by the
// next block, or, for the block that returns the loss, the seed of backward. In that case the micro-batch's
// share of the loss is added to the result.
at::Tensor Executor::output_gradient(const Instruction& instruction, MicroBatch& micro_batch) {
  const at::Tensor& output = micro_batch.outputs[static_cast<size_t>(instruction.index)];
  if (instruction.from.buffer >= 0)
    return state_.memory().at(instruction.from).narrow(0, 0, output.numel()).view(output.sizes());
  if (!has_loss(instruction)) return std::move(micro_batch.gradient);
  const auto& program = last_->program();
  const at::Tensor part =
      output.detach() / (static_cast<double>(program.micro_batches) / static_cast<double>(program.stages));
  result_.loss = result_.loss.defined() ? result_.loss + part : part;
  return model_.loss_gradient(output.scalar_type());
}

// Computes the gradient of the block's input. What the block's layers defer goes to micro_batch.weights, and
// so does the gradient of every parameter whose layer does not split.
void Executor::backward_input(const Instruction& instruction) {
  const auto block = static_cast<size_t>(instruction.index);
  MicroBatch& micro_batch = micro_batches_[instruction.micro_batch];
  attempt([&] {
    at::Tensor &input = micro_batch.inputs[block], &output = micro_batch.outputs[block];
    std::vector<at::Tensor> leaves = model_.parameters_of_block(instruction.index);
    const size_t num_parameters = leaves.size();
    if (input.requires_grad()) leaves.push_back(input);
    DeferredGradients& deferred = micro_batch.weights[instruction.index];
    model_.deferred = &deferred;
    std::vector<at::Tensor> gradients =
        torch::autograd::grad({output}, leaves, {output_gradient(instruction, micro_batch)},
                              /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
    model_.deferred = nullptr;
    micro_batch.gradient = input.requires_grad() ? gradients.back() : at::Tensor();
    for (size_t i = 0; i < num_parameters; ++i)
      if (gradients[i].defined())
        deferred.push_back([to = leaves[i], gradient = gradients[i]] { to.mutable_grad().add_(gradient); });
    if (instruction.to.buffer >= 0) send(instruction, std::exchange(micro_batch.gradient, {}));
    output.reset();
    input.reset();
  });
}

void Executor::backward_weight(const Instruction& instruction) {
  MicroBatch& micro_batch = micro_batches_[instruction.micro_batch];
  attempt([&] {
    const at::NoGradGuard no_grad;
    for (const auto& add : micro_batch.weights[instruction.index]) add();
    micro_batch.weights.erase(instruction.index);
  });
  release(instruction);
}

void Executor::backward(const Instruction& instruction) {
  const auto block = static_cast<size_t>(instruction.index);
  MicroBatch& micro_batch = micro_batches_[instruction.micro_batch];
  attempt([&] {
    at::Tensor &input = micro_batch.inputs[block], &output = micro_batch.outputs[block];
    torch::autograd::backward({output}, {output_gradient(instruction, micro_batch)});
    micro_batch.gradient = input.grad();
    if (instruction.to.buffer >= 0) send(instruction, std::exchange(micro_batch.gradient, {}));
    output.reset();  // frees the block's activations
    input.reset();
  });
  release(instruction);
}

// Frees the micro-batch once the backward of its first block is done: nothing needs it any more. Under every
// schedule that is a micro-batch's last action.
void Executor::release(const Instruction& instruction) {
  if (instruction.index == 0) micro_batches_.erase(instruction.micro_batch);
}

// The norm's sum is complete on every rank, so that all ranks come to the same decision.
void Executor::apply(const BoundProgram& bound) {
  if (failure_) return;
  if (bound.program().norm) result_.gradient_norm = guard_.inspect(state_.squares());
  state_.optimizer().step(guard_.control());
  guard_.after_update();
}

at::Tensor Executor::run_block(const Instruction& instruction) {
  const auto block = static_cast<size_t>(instruction.index);
  model_.step = step_;
  if (model_.draws) {
    model_.random_key =
        hash_of(random_key_, step_, instruction.micro_batch, last_->program().block_of_model(block));
    seed_generator(model_.device(), model_.random_key);
  }
  const MicroBatch& micro_batch = micro_batches_[instruction.micro_batch];
  return model_.blocks()[block].forward(micro_batch.inputs[block], micro_batch.batch);
}

void Executor::note(const Instruction& instruction) {
  if (evaluates_ || heartbeat_ == nullptr) return;
  const What what = instruction.what;
  if (what == What::data || what == What::update)
    return heartbeat_->stage(what == What::data ? "data" : "update");
  const char* const name = what == What::forward     ? "forward"
                           : what == What::recompute ? "forward again"
                                                     : "backward";
  heartbeat_->block(name, last_->program().block_of_model(instruction.index), instruction.micro_batch);
}

std::function<void()> Executor::start_inside_block(specs::Dimension dimension, specs::Collective what,
                                                   const at::Tensor& out, const at::Tensor& in) {
  const auto nothing = [] {};
  if (dimension == specs::Dimension::data && state_.program().copies.ranks == 1) return nothing;
  if (ablation_ == Ablation::compute_only) {
    const auto [first, count] = std::exchange(rows_for_itself_, {0, -1});
    stand_in(what, out, count < 0 ? in : in.narrow(0, first, count));
    return nothing;
  }
  size_t call = 0;
  together([&] { call = last_->start_inside_block(dimension, what, out, in); });
  return [this, call] { together([&] { last_->wait_inside_block(call); }); };
}

// A rank that computes alone is taken to receive from each rank the rows that it has for itself.
std::vector<int64_t> Executor::gather_counts(const at::Tensor& own, int64_t ranks, int64_t index) {
  std::vector<int64_t> counts;
  if (ablation_ == Ablation::compute_only) {
    const at::Tensor all = own.repeat({ranks}).cpu();
    counts.assign(all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + all.numel());
    const int64_t each = own.numel() / ranks;
    const auto first = counts.begin() + index * each;
    rows_for_itself_ = {std::accumulate(counts.begin(), first, int64_t{0}),
                        std::accumulate(first, first + each, int64_t{0})};
  } else {
    const at::Tensor all = at::empty({ranks * own.numel()}, own.options());
    together([&] { counts = last_->gather_counts(all, own); });
  }
  return counts;
}

std::string Executor::where() const { return heartbeat_ ? heartbeat_->place() : "a step"; }

// Implements Note [Draining] (executor.h). After a failure, tensors of all micro-batches are freed, and
// nothing is computed any more.
void Executor::attempt(const std::function<void()>& compute) {
  if (failure_) return;
  const meter::Strict strict;  // device/meter.h, Note [Where memory may run out]
  try {
    compute();
  } catch (const std::exception& error) {
    end_job_if_gpu_is_lost(error.what());
    failure_ = std::current_exception();
    model_.deferred = nullptr;
    model_.recompute = false;
    // Frees memory for the rest of the step.
    for (auto& [number, micro_batch] : micro_batches_) {
      micro_batch.inputs.assign(micro_batch.inputs.size(), {});
      micro_batch.outputs.assign(micro_batch.outputs.size(), {});
      micro_batch.activation.reset();
      micro_batch.gradient.reset();
      micro_batch.weights.clear();
    }
  }
}

}  // namespace shardmark
