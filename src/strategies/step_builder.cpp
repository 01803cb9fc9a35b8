// The builder keeps a list of buffers, a list of calls and a list of instructions, and only ever appends to
// them. At the end of a step, gradients that several ranks share are summed, the gradient norm is computed,
// and the optimizer updates what the rank owns.
#include "strategies/step_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "strategies/messages.h"
#include "strategies/program_check.h"

namespace shardmark::strategies {

StepBuilder::StepBuilder(std::string strategy, const StepInput& input, const Schedule& schedule,
                         std::optional<ModelTable> regrouped, std::vector<GroupLayout> layout)
    : regrouped_(std::move(regrouped)),
      input_(input.with(regrouped_ ? *regrouped_ : input.model)),
      positions_(strategies::positions(schedule, input_.model)),
      trains_(positions_.back().adds_gradients()) {
  for (const size_t group : specs::backward_order(input_.model))
    if (specs::is_root(input_.model.groups[group])) roots_.push_back(group);
  program_.strategy = std::move(strategy);
  program_.layout = std::move(layout);
  // The groups that only one block uses share a slot, one behind the other. Root groups have slots of their
  // own.
  std::vector<int64_t> ends(input_.model.blocks.size());  // of the units so far in the slot of each block
  for (size_t group = 0; group < program_.layout.size(); ++group) {
    const specs::GroupSpec& spec = input_.model.groups[group];
    const int64_t numel = specs::is_root(spec) ? 0 : program_.layout[group].numel;
    unit_begins_.push_back(numel == 0 ? 0 : ends[static_cast<size_t>(spec.first_block)]);
    ends[static_cast<size_t>(spec.first_block)] += numel;
    largest_units_ = std::max(largest_units_, ends[static_cast<size_t>(spec.first_block)]);
  }
  program_.offload = input.options.contains("offload") && input.options.at("offload") == "optimizer";
  program_.parameters.resize(program_.layout.size());
  program_.gradients.resize(program_.layout.size());
  program_.micro_batches = input.accumulation;
  program_.chunks = input_.chunks;
  program_.stages = input.mesh.pipeline;
  program_.copies = input.all();
  program_.experts = input.mesh.expert_group();
  // All reductions are sums, and so are the gradients of several micro-batches. Backward therefore starts
  // from 1 / (ranks x micro-batches), which makes the sum the gradient of the mean loss without a division
  // later.
  program_.gradient_scale = 1.0 / static_cast<double>(input.ranks * input.accumulation);
}

int64_t StepBuilder::numel_of_experts() const {
  int64_t numel = 0;
  for (size_t group = 0; group < program_.layout.size(); ++group)
    if (input_.model.groups[group].has_own_experts()) numel += program_.layout[group].numel;
  return numel;
}

Slice StepBuilder::allocate(std::string name, Use use, Element element, int64_t numel) {
  program_.buffers.push_back({std::move(name), use, element, numel, numel});
  return {std::ssize(program_.buffers) - 1, 0, numel};
}

// Gradients that become complete one after the other are adjacent in memory, so that a bucket is one range;
// those of experts that ranks share follow all others.
std::vector<Slice> StepBuilder::allocate_groups(std::string name, Use use, Element element) {
  Slice all = allocate(std::move(name), use, element, specs::total_numel(program_.layout));
  std::vector<Slice> groups(program_.layout.size());
  for (const size_t group : specs::memory_order(input_.model)) {
    groups[group] = all.first(program_.layout[group].numel);
    all.begin += groups[group].numel;
  }
  return groups;
}

ModelShards StepBuilder::allocate_shards(std::string name, Use use, Element element,
                                         const std::vector<GroupLayout>& layout) {
  // The shards of all groups follow each other without gaps. The length of the buffer is known only at the
  // end.
  Slice next = allocate(std::move(name), use, element, 0);
  ModelShards shards{layout, {}};
  for (const GroupLayout& place : layout) {
    Shard& shard = shards.of.emplace_back();
    for (size_t segment = 0; segment < place.segments.size(); ++segment) {
      shard.push_back(next.first(place.owned(segment, input_.rank).numel));
      next.begin += shard.back().numel;
    }
  }
  program_.buffers.back().numel = next.begin;
  program_.buffers.back().most_numel = specs::largest_share(layout);
  return shards;
}

Shard StepBuilder::shard_of(const GroupLayout& layout, Slice whole) const {
  Shard shard;
  for (size_t segment = 0; segment < layout.segments.size(); ++segment)
    shard.push_back(whole.part(layout.owned(segment, input_.rank)));
  return shard;
}

ModelShards StepBuilder::shards_of(const std::vector<Slice>& groups) const {
  ModelShards shards{program_.layout, {}};
  for (size_t g = 0; g < groups.size(); ++g) shards.of.push_back(shard_of(program_.layout[g], groups[g]));
  return shards;
}

Slice StepBuilder::all_of(const std::vector<Slice>& groups) {
  if (groups.empty()) return {};
  Slice all{groups.front().buffer, 0, 0};
  for (const Slice& group : groups) all.numel += group.numel;
  return all;
}

void StepBuilder::add(Instruction instruction) {
  instruction.micro_batch = micro_batch_;
  instruction.part = part_;
  program_.instructions.push_back(instruction);
}

void StepBuilder::begin(const Action& action) {
  micro_batch_ = action.micro_batch;
  part_ = action.what == Compute::load      ? StepPart::data
          : action.what == Compute::forward ? StepPart::forward
                                            : StepPart::backward;
}

void StepBuilder::compute(const Action& action) {
  switch (action.what) {
    case Compute::load:
      add({What::data});
      part_ = StepPart::forward;  // what moves before the first block computes belongs to forward
      return;
    case Compute::forward:
      add({What::forward, action.block});
      break;
    case Compute::recompute:
      add({What::recompute, action.block});
      break;
    case Compute::backward:
      add({What::backward, action.block});
      break;
    case Compute::backward_input:
      add({What::backward_input, action.block});
      break;
    case Compute::backward_weight:
      add({What::backward_weight, action.block});
      return;
  }
  Instruction& block_computes = program_.instructions.back();
  block_computes.keeps_activations = action.keeps_activations;
  block_computes.from = std::exchange(takes_, {});
  block_computes.to = std::exchange(gives_, {});
  const specs::BlockSpec& block = input_.model.blocks[static_cast<size_t>(action.block)];
  const bool is_forward = action.what == Compute::forward || action.what == Compute::recompute;
  const bool has_gradients_of_parameters = action.what != Compute::backward_input;
  call_inside_block(!trains_     ? block.evaluation_calls
                    : is_forward ? block.forward_calls
                                 : block.backward_calls,
                    has_gradients_of_parameters);
}

ProcessGroup StepBuilder::process_group_of(const specs::BlockCall& call) const {
  if (call.dimension == specs::Dimension::data) return all();
  return input_.mesh.process_group_of(call.dimension).among(call.among);
}

double StepBuilder::bytes_of(const specs::BlockCall& call) const {
  return static_cast<double>((call.numel + call.numel_per_sample * input_.samples) *
                             specs::bytes_of(call.element, input_.bytes));
}

// A block starts its calls one after the other, and waits for them in the same order. Every call has a start
// and a wait of its own, right after the instruction of the block. Elements per sample become elements of a
// micro-batch.
// The sums of gradients of inputs are hidden by the computation of those of parameters, if that follows at
// once.
void StepBuilder::call_inside_block(const std::vector<specs::BlockCall>& calls,
                                    bool has_gradients_of_parameters) {
  for (specs::BlockCall call : calls) {
    const ProcessGroup process_group = process_group_of(call);
    if (process_group.ranks == 1) continue;
    // The first part of a split backward is half of it.
    if (!has_gradients_of_parameters)
      call.hidden_by = call.what == Collective::all_gather ? 2 * call.hidden_by : 0;
    const double bytes = bytes_of(call);
    call.numel += std::exchange(call.numel_per_sample, 0) * input_.samples;
    Operations made = start({{.what = call.what,
                              .bytes = bytes,
                              .process_group = process_group,
                              .inside_block = call,
                              .lane = kBlockLane}});
    wait(made);
  }
}

void StepBuilder::local(What what, Slice to, Slice from) {
  if (to.numel > 0) add({what, 0, 1, to, from});
}

void StepBuilder::copy(const Shard& to, const Shard& from) {
  for (size_t segment = 0; segment < to.size(); ++segment) copy(to[segment], from[segment]);
}

void StepBuilder::add(const Shard& to, const Shard& from) {
  for (size_t segment = 0; segment < to.size(); ++segment) add(to[segment], from[segment]);
}

double StepBuilder::bytes_of(Slice slice) const {
  const int64_t each = slice.buffer < 0 ? 8 : specs::bytes_of(element_of(slice), input_.bytes);
  return static_cast<double>(slice.numel * each);
}

CollectiveCall StepBuilder::call(Collective what, Slice out, Slice in) const {
  return call(what, out, in, all());
}

CollectiveCall StepBuilder::call(Collective what, Slice out, Slice in, ProcessGroup process_group) const {
  return {what, std::max(bytes_of(out), bytes_of(in)), process_group, {}, out, in};
}

Operations StepBuilder::start(std::vector<CollectiveCall> calls) {
  const Operations operations{std::ssize(program_.calls), std::ssize(calls)};
  for (CollectiveCall& call : calls)
    call.dimension =
        call.inside_block ? call.inside_block->dimension : input_.mesh.dimension_of(call.process_group);
  if (operations.count > 0) add({What::start, operations.first, operations.count});
  std::move(calls.begin(), calls.end(), std::back_inserter(program_.calls));
  return operations;
}

Operations StepBuilder::unshard(size_t group, Slice whole, const ModelShards& shards) {
  // A segment that one rank owns (whole tensors of zero3) is broadcast by that rank. A segment that is cut
  // into equal shards is all-gathered.
  const GroupLayout& layout = shards.layout[group];
  const Shard& shard = shards.of[group];
  // If the shard has the element type of `whole`, it is sent as it is. Otherwise it is first converted into
  // this rank's part of `whole`, and the gather works in place.
  Shard parts = shard_of(layout, whole);
  if (element_of(shard.front()) == element_of(whole))
    parts = shard;
  else
    copy(parts, shard);
  std::vector<CollectiveCall> calls;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    const auto& [range, owner] = layout.segments[i];
    const Slice segment = whole.part(range);
    calls.push_back({owner ? Collective::broadcast : Collective::all_gather, bytes_of(segment),
                     layout.process_group, owner, segment, parts[i], static_cast<int64_t>(group)});
    if (input_.own_gathers) calls.back().lane = kGatherLane;
  }
  return start(std::move(calls));
}

Operations StepBuilder::reduce(size_t group, Slice whole) {
  const GroupLayout& layout = program_.layout[group];
  const Shard parts = shard_of(layout, whole);
  std::vector<CollectiveCall> calls;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    const auto& [range, owner] = layout.segments[i];
    const Slice segment = whole.part(range);
    calls.push_back({owner ? Collective::reduce : Collective::reduce_scatter, bytes_of(segment),
                     layout.process_group, owner, owner ? segment : parts[i], segment,
                     static_cast<int64_t>(group)});
  }
  return start(std::move(calls));
}

Operations StepBuilder::all_reduce(const Shard& slices, ProcessGroup process_group,
                                   std::optional<int64_t> group) {
  std::vector<CollectiveCall> calls;
  for (const Slice& slice : slices)
    if (slice.numel > 0)
      calls.push_back({Collective::all_reduce, bytes_of(slice), process_group, {}, slice, slice, group});
  return start(std::move(calls));
}

Operations StepBuilder::sum_over_replicas(size_t group, const Shard& shard) {
  // Replicas are the ranks that own the same shard: those at the same place in every sharding group. They
  // are as far apart as such a group spans.
  const ProcessGroup& sharded = program_.layout[group].process_group;
  const int64_t span = sharded.ranks * sharded.stride;
  const ProcessGroup replicas{all().ranks * all().stride / span, span};
  if (replicas.ranks == 1) return {};
  return all_reduce(shard, replicas, static_cast<int64_t>(group));
}

Operations StepBuilder::send(Slice message, int64_t to, bool is_forward) {
  const ProcessGroup pipeline = input_.mesh.pipeline_group();
  return start({{.what = Collective::send_recv,
                 .bytes = bytes_of(message),
                 .process_group = pipeline,
                 .root = to,
                 .in = message,
                 .lane = lane_of(pipeline.index_of(input_.rank), to, pipeline.ranks, is_forward)}});
}

Operations StepBuilder::receive(Slice message, int64_t from, bool is_forward) {
  const ProcessGroup pipeline = input_.mesh.pipeline_group();
  return start({{.what = Collective::send_recv,
                 .bytes = bytes_of(message),
                 .process_group = pipeline,
                 .root = from,
                 .out = message,
                 .lane = lane_of(from, pipeline.index_of(input_.rank), pipeline.ranks, is_forward)}});
}

void StepBuilder::wait(Operations& operations) {
  if (operations.count > 0) add({What::wait, operations.first, operations.count});
  operations.count = 0;
}

// The wait is empty until fill_in() is called. finish() removes it if that never happens, as in an
// evaluation.
size_t StepBuilder::wait_for_step_before() {
  add({What::wait, 0, 0});
  return program_.instructions.size() - 1;
}

void StepBuilder::fill_in(size_t wait, Operations operations) {
  program_.instructions[wait].index = operations.first;
  program_.instructions[wait].count = operations.count;
}

// Large enough for the largest call, in bytes, because calls inside blocks have different element types. The
// exchanges of tokens get stand-in memory when it is needed.
void StepBuilder::allocate_for_calls_inside_blocks() {
  double most = 0;
  const auto at_most = [&](const std::vector<specs::BlockCall>& calls) {
    for (const specs::BlockCall& call : calls)
      if (process_group_of(call).ranks > 1 && !call.exchanges_tokens()) most = std::max(most, bytes_of(call));
  };
  for (const specs::BlockSpec& block : input_.model.blocks)
    for (const auto* calls : {&block.forward_calls, &block.backward_calls, &block.evaluation_calls})
      at_most(*calls);
  if (most > 0)
    program_.inside_block = allocate("calls inside blocks", Use::transient, Element::fp64,
                                     static_cast<int64_t>(std::ceil(most / 8)));
}

Program StepBuilder::finish() {
  if (trains_) allocate_for_calls_inside_blocks();
  // Waits for nothing remain where a wait was placed for calls that were never made.
  std::erase_if(program_.instructions,
                [](const Instruction& i) { return i.what == What::wait && i.count == 0; });
  const std::string wrong = wrong_with(program_, input_.model);
  ENSURE(wrong.empty(), wrong);
  program_.regrouped = std::move(regrouped_);
  return std::move(program_);
}

OptionSpec prefetch_option() { return {"prefetch", OptionType::integer, 1, "blocks prefetched", {}, 0, 64}; }

int64_t group_size(const StepInput& input) {
  const auto group = input.options.at("group").get<int64_t>();
  return group == 0 ? input.ranks : group;
}

std::string group_must_divide(const StepInput& input) {
  const int64_t group = group_size(input), expert = input.mesh.expert_neighbours();
  if (input.ranks % group != 0) return fmt::format("groups of {} do not divide {} ranks", group, input.ranks);
  if (group % expert != 0 && expert % group != 0)
    return fmt::format(
        "expert {}{} neither divides group {} nor is a multiple of it; take group {} or leave it out",
        input.mesh.has_experts_on_tensor_ranks() ? "/ tensor = " : "", expert, group, expert);
  return {};
}

OptionSpec offload_option() {
  return {"offload",
          OptionType::text,
          "none",
          "what is kept in host memory instead of the device's",
          {"none", "optimizer"}};
}

std::vector<Slice> without(std::vector<Slice> slices, const std::vector<Slice>& removed) {
  for (const Slice& gone : removed) {
    std::vector<Slice> left;
    for (const Slice& slice : slices) {
      if (!slice.overlaps(gone)) {
        left.push_back(slice);
        continue;
      }
      const int64_t end = slice.begin + slice.numel, gone_end = gone.begin + gone.numel;
      if (slice.begin < gone.begin) left.push_back({slice.buffer, slice.begin, gone.begin - slice.begin});
      if (gone_end < end) left.push_back({slice.buffer, gone_end, end - gone_end});
    }
    slices = std::move(left);
  }
  return slices;
}

void StepBuilder::update() {
  part_ = StepPart::update;
  add({What::update});
  sum_over_tokens();
  share_tied_gradients();
  program_.norm = input_.norm;
  if (input_.norm) sum_squares();
  add({What::apply});
  part_ = StepPart::publish;
}

// Sums the gradients of parameters that all tensor-parallel ranks have, such as norms. With sequence_parallel
// each rank has their gradients for its part of the tokens only; Megatron-LM sums them once per step, too.
// Without it, all ranks have computed the same bits, and nothing is summed.
void StepBuilder::sum_over_tokens() {
  if (packed_.numel == 0) return;
  int64_t end = 0;
  const auto packed = [&](const Slice& slice) {
    const Slice place = packed_.part({end, slice.numel});
    end += slice.numel;
    return place;
  };
  for (const Slice& slice : in_all_tensor_ranks_) copy(packed(slice), slice);
  Operations sum = all_reduce({packed_.first(end)}, input_.mesh.tensor_group());
  wait(sum);
  end = 0;
  for (const Slice& slice : in_all_tensor_ranks_) copy(slice, packed(slice));
}

// Each of the two stages that have a tied group has computed a part of its gradient. They exchange the parts.
// An addition of two numbers is commutative, so that both stages get the same bits.
void StepBuilder::share_tied_gradients() {
  const ProcessGroup pipeline = input_.mesh.pipeline_group();
  const int64_t own = pipeline.index_of(input_.rank), last = pipeline.ranks - 1;
  for (size_t group = 0; group < gradients_.size(); ++group) {
    if (!input_.model.groups[group].is_tied) continue;
    for (const Slice& gradient : gradients_[group]) {
      if (gradient.numel == 0) continue;
      const Slice theirs = from_other_end_.first(gradient.numel);
      Operations exchange = start({{.what = Collective::send_recv,
                                    .bytes = bytes_of(gradient),
                                    .process_group = pipeline,
                                    .root = own == 0 ? last : 0,
                                    .out = theirs,
                                    .in = gradient,
                                    .group = static_cast<int64_t>(group),
                                    .lane = lane_of_ends()}});
      wait(exchange);
      add(gradient, theirs);
    }
  }
}

// Adds up the squares over all ranks of a copy of the model, so that each element counts once.
void StepBuilder::sum_squares() {
  add({What::squares, 0, 1, kSquares});
  std::vector<ProcessGroup> process_groups;
  if (squares_of_.ranks > 1) process_groups.push_back(squares_of_);
  if (input_.mesh.tensor > 1) process_groups.push_back(input_.mesh.tensor_group());
  if (input_.mesh.pipeline > 1) process_groups.push_back(input_.mesh.pipeline_group());
  for (const ProcessGroup& process_group : process_groups) {
    Operations sum = all_reduce({kSquares}, process_group);
    wait(sum);
  }
}

void StepBuilder::updates(const ModelShards& parameters, const ModelShards& gradients) {
  program_.owned = parameters.of;
  for (size_t group = 0; group < parameters.of.size(); ++group)
    for (size_t segment = 0; segment < parameters.of[group].size(); ++segment)
      if (parameters.of[group][segment].numel > 0)
        program_.updated.push_back({parameters.of[group][segment], gradients.of[group][segment]});
  program_.most_updated = specs::largest_share(program_.layout);
  set_gradients(gradients.of, process_group());
}

void StepBuilder::updates(const std::vector<Slice>& parameters, const std::vector<Slice>& gradients,
                          const std::vector<Slice>& copy) {
  std::vector<Shard> of_groups;
  for (const Slice& group : parameters) program_.owned.push_back({group});
  for (const Slice& group : gradients) of_groups.push_back({group});
  if (!parameters.empty()) program_.updated = {{all_of(parameters), all_of(gradients)}};
  if (!copy.empty()) program_.updated.front().copy = all_of(copy);
  program_.most_updated = all_of(parameters).numel;
  set_gradients(std::move(of_groups), ProcessGroup{});
}

// Returns this rank's slices of the gradients of parameters that are not tensor-parallel shards, in memory
// order.
std::vector<Slice> StepBuilder::gradients_in_all_tensor_ranks() const {
  std::vector<Slice> found;
  for (size_t group = 0; group < gradients_.size(); ++group) {
    const std::vector<specs::ParameterSpec>& parameters = input_.model.groups[group].parameters;
    const GroupLayout& layout = program_.layout[group];
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].shard) continue;
      const int64_t begin = layout.offsets[i], end = begin + parameters[i].numel();
      for (size_t segment = 0; segment < gradients_[group].size(); ++segment) {
        const Slice& own = gradients_[group][segment];
        const bool is_whole = own.numel == layout.numel;
        const int64_t from = is_whole ? 0 : layout.owned(segment, input_.rank).begin;
        const int64_t first = std::max(begin, from), last = std::min(end, from + own.numel);
        if (first < last) found.push_back(own.part({first - from, last - first}));
      }
    }
  }
  return found;
}

// Decides which gradients this rank counts in the norm: those of a tied group are counted by the first stage,
// those of parameters that all tensor-parallel ranks have by the first of these ranks. If more ranks share
// experts than have all other gradients once, the first of them count the others. Allocates the memory for
// the exchange of the first two. sharded_over: the ranks that have all gradients but those of experts once.
void StepBuilder::set_gradients(std::vector<Shard> gradients, ProcessGroup sharded_over) {
  gradients_ = std::move(gradients);
  const specs::Mesh& mesh = input_.mesh;
  squares_of_ = {std::max(sharded_over.ranks, mesh.expert_neighbours()), mesh.copies().stride};
  const bool is_first = mesh.stage_of(input_.rank) == 0;
  int64_t most = 0;
  std::vector<Slice> not_counted;
  for (size_t group = 0; group < gradients_.size(); ++group) {
    if (!input_.model.groups[group].is_tied) continue;
    for (const Slice& gradient : gradients_[group]) most = std::max(most, gradient.numel);
    if (!is_first) not_counted.insert(not_counted.end(), gradients_[group].begin(), gradients_[group].end());
  }
  if (squares_of_.index_of(input_.rank) >= sharded_over.ranks)
    for (size_t group = 0; group < gradients_.size(); ++group)
      if (!input_.model.groups[group].has_own_experts())
        not_counted.insert(not_counted.end(), gradients_[group].begin(), gradients_[group].end());
  if (mesh.tensor > 1) in_all_tensor_ranks_ = gradients_in_all_tensor_ranks();
  if (mesh.tensor_group().index_of(input_.rank) > 0)
    not_counted.insert(not_counted.end(), in_all_tensor_ranks_.begin(), in_all_tensor_ranks_.end());
  for (const OptimizerSlices& updated : program_.updated) program_.counted.push_back(updated.gradients);
  program_.counted = without(std::move(program_.counted), not_counted);
  if (most > 0)
    from_other_end_ = allocate("tied gradients of the other stage", Use::transient, Element::master, most);
  int64_t shared = 0;
  for (const Slice& slice : in_all_tensor_ranks_) shared += slice.numel;
  if (input_.model.split.sequence_parallel && shared > 0)
    packed_ = allocate("gradients over tokens", Use::transient, Element::master, shared);
}

// Walks over the schedule and asks each policy before and after every action. Messages are a policy, too,
// and come last before an action and first after it. An output or gradient is therefore sent before the
// reductions of the same block start: another stage waits for it.
Program write_step(StepBuilder& step, std::initializer_list<ShardingPolicy*> sharding) {
  Messages messages(step);
  std::vector<ShardingPolicy*> policies = sharding;
  policies.push_back(&messages);
  for (const Position& at : step.positions()) {
    step.begin(at.action);
    for (ShardingPolicy* policy : policies) policy->before(at);
    step.compute(at.action);
    for (auto policy = policies.rbegin(); policy != policies.rend(); ++policy) (*policy)->after(at);
  }
  if (step.trains()) {
    for (ShardingPolicy* policy : policies) policy->finish();
    step.update();
    for (ShardingPolicy* policy : policies) policy->publish();
  } else {
    messages.finish();
  }
  return step.finish();
}

}  // namespace shardmark::strategies
