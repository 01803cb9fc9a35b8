// Sets up the memory of a strategy's program, and lists the tensors that make up its state.
// The state is gathered as whole tensors and scattered again, one group at a time: first among the ranks
// that have the same part of the model, then among those that share its blocks, and then from the stage that
// has the group to all others.
#include "executor/training_state.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "device/device.h"
#include "models/parallel.h"

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

constexpr const char* kNumUpdates = "optimizer.num_updates";
constexpr const char* kCarried = "reduction.";

at::Tensor on_cpu(const at::Tensor& value) {
  return value.to(at::kCPU, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

std::vector<strategies::ProcessGroupUse> Programs::process_groups() const {
  std::vector<strategies::ProcessGroupUse> all;
  for (const auto* program : {&step, &step_with_norm, &evaluation}) {
    const auto some = program->process_groups();
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
                             std::shared_ptr<const ProcessGroups> process_groups)
    : model_(regrouped(context.model, programs.step)),
      comm_(context.comm),
      mesh_(context.mesh),
      stages_(context.stages),
      process_groups_(std::move(process_groups)),
      memory_(programs.step, context.model, context.comm, context.types()),
      reduction_(make_kernels(programs.step, context.model, memory_, context.comm, context.seed)),
      step_(std::move(programs.step), memory_, *process_groups_, reduction_.get()),
      step_with_norm_(std::move(programs.step_with_norm), memory_, *process_groups_, reduction_.get()),
      evaluation_(std::move(programs.evaluation), memory_, *process_groups_, reduction_.get()) {
  fill_initial(program(), model_, memory_, comm_.rank(), context.seed);
  optimizer_ = make_optimizer_of(context, program(), memory_);
}

// If the optimizer's kernel writes the copy in the compute type together with the update, the program has
// no instruction for it. Where there was no update, the copy is made here.
void TrainingState::publish() {
  for (const auto& [parameters, gradients, copy] : program().updated)
    if (copy.buffer >= 0) memory_.at(copy).copy_(memory_.at(parameters));
  const auto& instructions = program().instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].part != strategies::StepPart::publish) continue;
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
    return slice.buffer >= 0 && program().buffers[static_cast<size_t>(slice.buffer)].is_replicated();
  };
  wait_all();
  const auto& instructions = program().instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    // A gather that forward needs early starts while a batch is loaded or, in a pipeline, during a backward.
    if (instructions[i].part == strategies::StepPart::publish) continue;
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
    if (program().buffers[i].is_replicated())
      all.push_back(memory_.buffer(i).narrow(0, 0, program().buffers[i].num_replicated));
  return all;
}

std::vector<at::Tensor> TrainingState::of_own_experts() {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < program().buffers.size(); ++i) {
    const auto& [begin, end] = std::pair(program().buffers[i].num_replicated, program().buffers[i].numel);
    if (begin > 0 && begin < end) all.push_back(memory_.buffer(i).narrow(0, begin, end - begin));
  }
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

const specs::ModelTable& TrainingState::table_of(size_t stage) const {
  return stages_.empty() ? model_.table() : stages_[stage];
}

bool TrainingState::is_own(size_t stage) const { return std::cmp_equal(mesh_.stage_of(comm_.rank()), stage); }

// A whole group from the shards of all ranks in the group's process group, on the device.
at::Tensor TrainingState::gathered(size_t group, const std::vector<at::Tensor>& parts) {
  const specs::GroupLayout& layout = program().layout[group];
  if (layout.process_group.ranks == 1 && parts.size() == 1) return parts.front().to(comm_.device());
  Communicator& process_group = process_groups_->of({layout.process_group});
  at::Tensor whole = at::empty({layout.numel}, parts.front().options().device(comm_.device()));
  for (size_t segment = 0; segment < parts.size(); ++segment) {
    const auto& [range, owner] = layout.segments[segment];
    const at::Tensor own = parts[segment].to(comm_.device()), to = whole.narrow(0, range.begin, range.numel);
    if (owner)
      process_group.broadcast(to, own, static_cast<int>(*owner)).wait();
    else
      process_group.all_gather(to, own).wait();
  }
  return whole;
}

// Broadcasts a stage's tensor to the other stages.
void TrainingState::send_from(size_t stage, const at::Tensor& value) {
  if (mesh_.pipeline > 1)
    process_groups_->of({mesh_.pipeline_group()}).broadcast(value, static_cast<int>(stage)).wait();
}

// Assembles a parameter from the shards of all tensor-parallel or expert-parallel ranks, in its own shape.
at::Tensor TrainingState::of_all_shards(const at::Tensor& own, const specs::ParameterSpec& spec) {
  if (!spec.shard) return own.view(spec.shape);
  std::vector<int64_t> shape = spec.shape;
  shape.insert(shape.begin(), spec.shard->ranks);
  const at::Tensor parts = at::empty(shape, own.options());
  const specs::ProcessGroup ranks = mesh_.process_group_of(spec.shard->dimension);
  process_groups_->of({ranks}).all_gather(parts.view(-1), own).wait();
  return assembled(parts, spec);
}

// A tied group counts as the first stage's. The last stage has the same bits. The ranks of the stage gather
// the group; ranks of other stages receive each parameter. All ranks therefore go through the same stages,
// groups and parameters in the same order.
void TrainingState::visit_group(const Kind& kind, size_t stage, size_t group, const StateVisitor& visit) {
  const specs::GroupSpec& spec = table_of(stage).groups[group];
  if (spec.is_tied && stage > 0) return;
  const at::Tensor whole = is_own(stage) ? gathered(group, kind.parts[group]) : at::Tensor();
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const specs::ParameterSpec& parameter = spec.parameters[i];
    const std::vector<int64_t> shape = parameter.whole_shape();
    const at::Tensor value =
        whole.defined()
            ? of_all_shards(whole.narrow(0, program().layout[group].offsets[i], parameter.numel()), parameter)
            : at::empty(shape, at::TensorOptions(comm_.device()).dtype(kind.type));
    send_from(stage, value.view(-1));
    if (visit) visit(kind.prefix + parameter.name, on_cpu(value));
  }
}

void TrainingState::visit(State what, const StateVisitor& visit) {
  wait_all();
  const size_t num_stages = std::max<size_t>(1, stages_.size());
  for (const Kind& kind : kinds(what))
    for (size_t stage = 0; stage < num_stages; ++stage)
      for (size_t group = 0; group < table_of(stage).groups.size(); ++group)
        visit_group(kind, stage, group, visit);
  if (what == State::all)
    for (const auto& [name, own, rank, replicated] : carried()) {
      const at::Tensor value = rank == comm_.rank() ? own : at::empty_like(own);
      comm_.broadcast(value, rank).wait();
      if (visit) visit(name, on_cpu(value));
    }
  for (size_t stage = 0; stage < num_stages; ++stage)
    for (const specs::BufferSpec& buffer : table_of(stage).buffers) {
      const at::Tensor value =
          is_own(stage) ? model_.buffer(buffer.name).clone()
                        : at::empty(buffer.shape, at::TensorOptions(comm_.device()).dtype(model_.dtype()));
      send_from(stage, value.view(-1));
      if (visit) visit(buffer.name, on_cpu(value));
    }
  if (visit && what == State::all && optimizer_->num_updates().defined())
    visit(kNumUpdates, on_cpu(optimizer_->num_updates()));
}

// Rank 0 reads every tensor and broadcasts it. The ranks that have the group keep their shards.
void TrainingState::load_group(const Kind& kind, size_t stage, size_t group, const StateReader& read) {
  const specs::GroupSpec& spec = table_of(stage).groups[group];
  const auto options = at::TensorOptions(comm_.device()).dtype(kind.type);
  const at::Tensor whole = is_own(stage) ? at::zeros({program().layout[group].numel}, options) : at::Tensor();
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const specs::ParameterSpec& parameter = spec.parameters[i];
    const at::Tensor value = at::empty(parameter.whole_shape(), options);
    if (comm_.rank() == 0) value.copy_(read(kind.prefix + parameter.name));
    comm_.broadcast(value.view(-1), 0).wait();
    if (whole.defined())
      whole.narrow(0, program().layout[group].offsets[i], parameter.numel())
          .copy_(own_part(value, parameter).view(-1));
  }
  if (!whole.defined()) return;
  for (size_t segment = 0; segment < kind.parts[group].size(); ++segment) {
    const specs::Range own = program().layout[group].owned(segment, comm_.rank());
    kind.parts[group][segment].copy_(whole.narrow(0, own.begin, own.numel));
  }
}

void TrainingState::load(State what, const StateReader& read) {
  wait_all();
  const bool reads = comm_.rank() == 0;
  const size_t num_stages = std::max<size_t>(1, stages_.size());
  for (const Kind& kind : kinds(what))
    for (size_t stage = 0; stage < num_stages; ++stage)
      for (size_t group = 0; group < table_of(stage).groups.size(); ++group)
        load_group(kind, stage, group, read);
  for (size_t stage = 0; stage < num_stages; ++stage)
    for (const specs::BufferSpec& buffer : table_of(stage).buffers) {
      const at::Tensor value =
          at::empty(buffer.shape, at::TensorOptions(comm_.device()).dtype(model_.dtype()));
      if (reads) value.copy_(read(buffer.name));
      comm_.broadcast(value.view(-1), 0).wait();
      if (is_own(stage)) model_.buffer(buffer.name).copy_(value);
    }
  if (what == State::all && optimizer_->num_updates().defined()) {
    if (reads) optimizer_->num_updates().copy_(read(kNumUpdates));
    broadcast_value(comm_, optimizer_->num_updates());
  }
  optimizer_->parameters_changed();
  publish();
}

// Ranks with the same part of the model hold the same shard of a group if they have the same index in their
// process groups, which lie in the group of all copies, and those of experts if they have the same experts.
std::vector<TrainingState::Own> TrainingState::own() {
  wait_all();
  const int rank = comm_.rank();
  const specs::ProcessGroup copies = mesh_.copies();
  const int64_t place = copies.index_of(rank), first = rank - place * copies.stride;
  // Compares places among the copies instead of ranks of the job: strides are divided by that of the
  // copies.
  const auto holders_of = [&](size_t number) {
    const specs::ProcessGroup& group = program().layout[number].process_group;
    const specs::ProcessGroup within{group.ranks, std::max<int64_t>(1, group.stride / copies.stride)};
    const bool has_own_experts = model_.table().groups[number].has_own_experts();
    const specs::ProcessGroup experts{has_own_experts ? mesh_.expert_neighbours() : 1, 1};
    std::vector<int> holders;
    for (int64_t other = 0; other < copies.ranks; ++other)
      if (within.index_of(other) == within.index_of(place) &&
          experts.index_of(other) == experts.index_of(place))
        holders.push_back(static_cast<int>(first + other * copies.stride));
    return holders;
  };
  std::vector<Own> all;
  for (const Kind& kind : kinds(State::all))
    for (size_t group = 0; group < kind.parts.size(); ++group)
      for (size_t segment = 0; segment < kind.parts[group].size(); ++segment)
        if (kind.parts[group][segment].numel() > 0)
          all.push_back({kind.prefix + "group" + std::to_string(group) + "." + std::to_string(segment),
                         kind.parts[group][segment], holders_of(group)});
  for (const auto& [name, value] : model_.buffers()) all.push_back({name, value, {rank}, /*of_model=*/false});
  if (optimizer_->num_updates().defined()) all.push_back({kNumUpdates, optimizer_->num_updates(), {rank}});
  for (const Carried& entry : carried())
    if (entry.replicated || entry.rank == rank)
      all.push_back({entry.name, entry.own, {rank}, /*of_model=*/false});
  return all;
}

std::vector<TrainingState::Carried> TrainingState::carried() const {
  std::vector<Carried> all;
  if (mesh_.pipeline > 1) return all;  // the buffers of stages differ in length
  for (size_t i = 0; i < program().buffers.size(); ++i) {
    const auto& [name, use, element, numel, most_numel, num_replicated, carried] = program().buffers[i];
    if (!carried || numel == 0) continue;
    const bool replicated =
        num_replicated > 0 && mesh_.tensor == 1;  // tensor-parallel ranks have different shards
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

}  // namespace shardmark
