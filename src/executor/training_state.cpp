// A strategy's memory set up, and its state as whole tensors, gathered and scattered one group at a time.
#include "executor/training_state.h"

#include <algorithm>
#include <cmath>

#include "device/device.h"

namespace shardmark {
namespace {

constexpr const char* kOptimizer = "optimizer.";
constexpr const char* kNumUpdates = "optimizer.num_updates";
constexpr const char* kCarried = "reduction.";

// A program's groups are the model's.
Model& regrouped(Model& model, const strategies::Program& program) {
  if (program.regrouped) model.regroup(*program.regrouped);
  return model;
}

std::unique_ptr<Optimizer> make_optimizer_of(const StateContext& context, const strategies::Program& program,
                                             const ProgramMemory& memory) {
  std::vector<OptimizerShard> shards;
  for (const auto& [parameters, gradients] : program.updated)
    shards.push_back({memory.at(parameters), memory.at(gradients)});
  if (program.offload) return make_offloaded_optimizer(context.optimizer, std::move(shards));
  return make_optimizer(context.optimizer, std::move(shards), context.comm.device());
}

at::Tensor on_cpu(const at::Tensor& value) {
  return value.to(at::kCPU, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
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

void TrainingState::wait_all() {
  for (BoundProgram* bound : {&step_, &step_with_norm_, &evaluation_}) bound->wait_all();
}

std::vector<at::Tensor> TrainingState::replicated() {
  wait_all();
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < program().buffers.size(); ++i)
    if (program().buffers[i].replicated) all.push_back(memory_.buffer(i));
  return all;
}

// The optimizer's shards as parts of groups: it has none for what is empty, or one for all groups together.
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
  std::vector<Kind> kinds = {{"", {}}};
  for (const auto& shard : program().owned) {
    auto& group = kinds.front().parts.emplace_back();
    for (const strategies::Slice& slice : shard) group.push_back(memory_.at(slice));
  }
  if (what == State::all)
    for (const auto& [kind, shards] : optimizer_->state())
      kinds.push_back({kOptimizer + kind + ".", parts_of(shards)});
  return kinds;
}

bool TrainingState::is_finite() {
  wait_all();
  const auto all_finite = [](const std::vector<at::Tensor>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](const auto& value) { return shardmark::is_finite(value); });
  };
  for (const auto& [prefix, parts] : kinds(State::all))
    if (!std::all_of(parts.begin(), parts.end(), all_finite)) return false;
  for (const Carried& entry : carried())
    if (entry.rank == comm_.rank() && !shardmark::is_finite(entry.own)) return false;
  const auto buffers = model_.buffers();
  return std::all_of(buffers.begin(), buffers.end(),
                     [](const auto& buffer) { return shardmark::is_finite(buffer.second); });
}

at::Tensor TrainingState::gathered(size_t group, const std::vector<at::Tensor>& parts) {
  const specs::GroupLayout& layout = program().layout[group];
  if (layout.team.ranks == 1 && parts.size() == 1) return parts.front();
  Communicator& team = teams_->of({layout.team});
  at::Tensor whole = at::empty({layout.numel}, parts.front().options().device(comm_.device()));
  for (size_t segment = 0; segment < parts.size(); ++segment) {
    const auto& [range, owner] = layout.segments[segment];
    const at::Tensor own = parts[segment].to(comm_.device()), to = whole.narrow(0, range.begin, range.numel);
    if (owner)
      team.broadcast(to, own, static_cast<int>(*owner)).wait();
    else
      team.all_gather(to, own).wait();
  }
  return whole;
}

void TrainingState::visit(State what, const StateVisitor& visit) {
  wait_all();
  const auto& layout = program().layout;
  for (const auto& [prefix, parts] : kinds(what)) {
    for (size_t g = 0; g < layout.size(); ++g) {
      const at::Tensor whole = gathered(g, parts[g]);
      const auto& specs = model_.table().groups[g].parameters;
      for (size_t i = 0; visit && i < specs.size(); ++i)
        visit(prefix + specs[i].name,
              on_cpu(whole.narrow(0, layout[g].offsets[i], specs[i].numel()).view(specs[i].shape)));
    }
  }
  if (what == State::all)
    for (const auto& [name, own, rank, replicated] : carried()) {
      const at::Tensor value = rank == comm_.rank() ? own : at::empty_like(own);
      comm_.broadcast(value, rank).wait();
      if (visit) visit(name, on_cpu(value));
    }
  if (!visit) return;
  for (const auto& [name, value] : model_.buffers()) visit(name, on_cpu(value));
  if (what == State::all && optimizer_->num_updates().defined())
    visit(kNumUpdates, on_cpu(optimizer_->num_updates()));
}

void TrainingState::load(State what, const StateReader& read) {
  wait_all();
  const bool reads = comm_.rank() == 0;
  const auto& layout = program().layout;
  for (const auto& [prefix, parts] : kinds(what)) {
    for (size_t g = 0; g < layout.size(); ++g) {
      const at::Tensor whole =
          at::zeros({layout[g].numel}, parts[g].front().options().device(comm_.device()));
      const auto& specs = model_.table().groups[g].parameters;
      for (size_t i = 0; reads && i < specs.size(); ++i)
        whole.narrow(0, layout[g].offsets[i], specs[i].numel())
            .view(specs[i].shape)
            .copy_(read(prefix + specs[i].name));
      comm_.broadcast(whole, 0).wait();
      for (size_t segment = 0; segment < parts[g].size(); ++segment) {
        const specs::Range own = layout[g].owned(segment, comm_.rank());
        parts[g][segment].copy_(whole.narrow(0, own.begin, own.numel));
      }
    }
  }
  if (reads)
    for (const auto& [name, value] : model_.buffers()) value.copy_(read(name));
  broadcast_buffers(model_, comm_);
  if (what == State::all && optimizer_->num_updates().defined()) {
    if (reads) optimizer_->num_updates().copy_(read(kNumUpdates));
    broadcast_value(comm_, optimizer_->num_updates());
  }
  optimizer_->parameters_changed();
  publish();
}

std::vector<TrainingState::Carried> TrainingState::carried() const {
  std::vector<Carried> all;
  for (size_t i = 0; i < program().buffers.size(); ++i) {
    const auto& [name, use, element, numel, most_numel, replicated, carried] = program().buffers[i];
    if (!carried || numel == 0) continue;
    std::string text = kCarried + name + "." + std::to_string(i);
    std::replace(text.begin(), text.end(), ' ', '_');
    for (int rank = 0; rank < (replicated ? 1 : comm_.size()); ++rank)
      all.push_back(
          {replicated ? text : text + ".rank" + std::to_string(rank), memory_.buffer(i), rank, replicated});
  }
  return all;
}

void TrainingState::load_carried(const StateReader& read) {
  for (const auto& [name, own, rank, replicated] : carried()) {
    const at::Tensor value = at::empty_like(own);
    if (comm_.rank() == 0) value.copy_(read(name));
    comm_.broadcast(value, 0).wait();
    if (replicated || rank == comm_.rank()) own.copy_(value);
  }
}

// By the extremes, which a NaN is one of: no other test of torch does without a copy of the values.
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

void broadcast_buffers(Model& model, Communicator& comm) {
  for (const auto& [name, value] : model.buffers()) broadcast_value(comm, value);
}

}  // namespace shardmark
