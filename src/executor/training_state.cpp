// Sets up the memory of a strategy's program, and lists the tensors that make up its state.
#include "executor/training_state.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "device/device.h"

namespace shardmark {
namespace {

constexpr const char* kOptimizer = "optimizer.";

// Regroups the model's parameters if the program has other groups than the model's own.
Model& regrouped(Model& model, const strategies::Program& program) {
  if (program.regrouped) model.regroup(*program.regrouped);
  return model;
}

std::unique_ptr<Optimizer> make_optimizer_of(const StateContext& context, const strategies::Program& program,
                                             const ProgramMemory& memory) {
  std::vector<OptimizerShard> shards;
  for (const auto& [parameters, gradients, copy] : program.updated)
    shards.push_back({memory.at(parameters), memory.at(gradients), memory.at(copy), context.model.fused});
  if (program.offload) return make_offloaded_optimizer(context.optimizer, std::move(shards));
  return make_optimizer(context.optimizer, shards, context.comm.device());
}

}  // namespace

std::vector<strategies::TeamUse> Programs::teams() const {
  std::vector<strategies::TeamUse> all;
  for (const auto* program : {&step, &step_with_norm, &evaluation}) {
    const auto some = program->teams();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Programs programs_of(const Choice& choice, strategies::StepInput input) {
  const strategies::Strategy& strategy = strategies::strategy(choice.name);
  input.norm = false;
  strategies::Program step = strategy.step(input), evaluation = strategy.evaluation(input);
  input.norm = true;
  return {std::move(step), strategy.step(input), std::move(evaluation)};
}

TrainingState::TrainingState(const StateContext& context, Programs programs,
                             std::shared_ptr<const Teams> teams)
    : model_(regrouped(context.model, programs.step)),
      comm_(context.comm),
      mesh_(context.mesh),
      stages_(context.stages),
      teams_(std::move(teams)),
      memory_(programs.step, context.model, context.comm, context.types()),
      reduction_(make_kernels(programs.step, context.model, memory_, context.comm, context.seed)),
      step_(std::move(programs.step), memory_, *teams_, reduction_.get()),
      step_with_norm_(std::move(programs.step_with_norm), memory_, *teams_, reduction_.get()),
      evaluation_(std::move(programs.evaluation), memory_, *teams_, reduction_.get()) {
  fill_initial(program(), model_, memory_, comm_.rank(), context.seed);
  optimizer_ = make_optimizer_of(context, program(), memory_);
}

void TrainingState::publish() {
  for (const auto& [parameters, gradients, copy] : program().updated)
    if (copy.buffer >= 0) memory_.at(copy).copy_(memory_.at(parameters));
  const auto& instructions = program().instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].part != strategies::Part::publish) continue;
    if (instructions[i].is_communication())
      step_.communicate(i);
    else
      step_.run_locally(i);
  }
  wait_all();
}

uint64_t TrainingState::key_of_draws(int64_t seed) const {
  const specs::Split& split = model_.table().split;
  const uint64_t key = hash_of(seed, program().copies.index_of(comm_.rank()));
  return split.sequence_parallel ? hash_of(key, split.tensor_index) : key;
}

void TrainingState::wait_all() {
  for (BoundProgram* bound : {&step_, &step_with_norm_, &evaluation_}) bound->wait_all();
}

// Some strategies copy and gather updated parameters only when the next forward comes near them.
std::vector<at::Tensor> TrainingState::replicated() {
  using What = strategies::Instruction::What;
  const auto is_replicated = [this](const strategies::Slice& slice) {
    return slice.buffer >= 0 && program().buffers[static_cast<size_t>(slice.buffer)].replicated;
  };
  wait_all();
  const auto& instructions = program().instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    // A gather that forward needs early starts while a batch is loaded or, in a pipeline, during a backward.
    if (instructions[i].part == strategies::Part::publish) continue;
    if (instructions[i].what == What::copy && is_replicated(instructions[i].to)) {
      step_.run_locally(i);
    } else if (instructions[i].what == What::start) {
      const auto& call = program().calls[static_cast<size_t>(instructions[i].index)];
      if (call.group && is_replicated(call.out)) step_.communicate(i);
    }
  }
  wait_all();
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < program().buffers.size(); ++i)
    if (program().buffers[i].replicated) all.push_back(memory_.buffer(i));
  return all;
}

// The optimizer's shards as parts of groups. The optimizer has no shard for an empty slice, and may have a
// single one for all groups together.
TrainingState::Parts TrainingState::parts_of(const std::vector<at::Tensor>& shards) const {
  Parts parts;
  size_t next = 0;
  const bool whole = program().updated.size() == 1 && program().owned.size() > 1;
  for (const auto& shard : program().owned) {
    auto& group = parts.emplace_back();
    for (const strategies::Slice& slice : shard) {
      if (whole)
        group.push_back(
            shards.front().narrow(0, slice.begin - program().updated.front().parameters.begin, slice.numel));
      else
        group.push_back(slice.numel > 0 ? shards.at(next++) : memory_.at(slice));
    }
  }
  ENSURE(whole || next == shards.size(), "optimizer state that does not match the parameter shards");
  return parts;
}

std::vector<TrainingState::Kind> TrainingState::kinds(State what) const {
  std::vector<Kind> kinds = {{"", memory_.types().master, {}}};
  for (const auto& shard : program().owned) {
    auto& group = kinds.front().parts.emplace_back();
    for (const strategies::Slice& slice : shard) group.push_back(memory_.at(slice));
  }
  if (what == State::all)
    for (const auto& [kind, shards] : optimizer_->state())
      kinds.push_back({kOptimizer + kind + ".", memory_.types().master, parts_of(shards)});
  return kinds;
}

bool TrainingState::is_finite() {
  wait_all();
  const auto all_finite = [](const std::vector<at::Tensor>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](const auto& value) { return shardmark::is_finite(value); });
  };
  for (const auto& [prefix, type, parts] : kinds(State::all))
    if (!std::all_of(parts.begin(), parts.end(), all_finite)) return false;
  for (const Carried& entry : carried())
    if (entry.rank == comm_.rank() && !shardmark::is_finite(entry.own)) return false;
  const auto buffers = model_.buffers();
  return std::all_of(buffers.begin(), buffers.end(),
                     [](const auto& buffer) { return shardmark::is_finite(buffer.second); });
}

// Tests the extremes, of which a NaN is one. All other tests of torch make a copy of the values.
bool is_finite(const at::Tensor& values) {
  if (values.numel() == 0) return true;
  const auto [least, most] = at::aminmax(values);
  return std::isfinite(item<double>(least)) && std::isfinite(item<double>(most));
}

void broadcast_value(Communicator& comm, const at::Tensor& value) {
  const at::Tensor on_device = value.to(comm.device()).view(-1);
  comm.broadcast(on_device, 0).wait();
  value.copy_(on_device.view(value.sizes()));
}

void broadcast_buffers(Model& model, Communicator& copies) {
  for (const auto& [name, value] : model.buffers()) broadcast_value(copies, value);
}

}  // namespace shardmark
