// fsdp: every group of parameters is sharded inside its tensors, an equal shard for each rank. The option
// `shard` says what is sharded: parameters, gradients and optimizer state (full, ZeRO-3), gradients and
// optimizer state (gradients, ZeRO-2), or optimizer state alone (optimizer, ZeRO-1). Before a block computes,
// its parameters are gathered from all shards into a slot (unshard), and the gathers of the next `prefetch`
// blocks are started. After the block has computed, its parameters give up the slot (reshard), unless they
// are used again before another block needs it. After a block's backward its gradients are reduce-scattered:
// each rank gets the sum for its own shard. With `group: G` a copy of the parameters is sharded over G
// neighbours. Ranks that own the same shard in different groups are replicas, and all-reduce the gradients of
// their shards (HSDP). Experts that ranks share are sharded in the same way, over those of these ranks that
// have the same experts.
//
// Sources: Rajbhandari et al., ZeRO, SC 2020, sections 5 and 7; Zhao et al., PyTorch FSDP, VLDB 2023, section
// 3; Zhang et al., MiCS, VLDB 2022.
#include "strategies/fsdp.h"

#include <algorithm>
#include <vector>

#include "strategies/paper.h"
#include "strategies/step_builder.h"

namespace shardmark::strategies {
namespace {

// How ZeRO-1 and ZeRO-2 hold parameters: whole on every rank, which updates only its own shard of them. The
// updated shards are all-gathered in place. The groups that the next step uses first are gathered right
// after the update, and each of the others when forward comes near it. Starting all of them at once would
// take as long, but NCCL begins operations in the order in which they are started (serving.h), so the first
// exchange inside a tensor-parallel block would wait until the last gather has begun. An evaluation, which
// follows a step, gathers the others itself.
class WholeParameters : public ShardingPolicy {
 public:
  explicit WholeParameters(StepBuilder& step)
      : step_(step), whole_(step.allocate_groups("parameters", Use::parameters, Element::compute)) {
    const Slice all = StepBuilder::all_of(whole_);
    step.replicated(all.first(all.numel - step.numel_of_experts()));
    own_ = step.input().bytes.mixed()
               ? step.allocate_shards("master parameters", Use::parameters, Element::master)
               : step.shards_of(whole_);
    for (size_t group = 0; group < whole_.size(); ++group) step.place_parameters(group, whole_[group]);
    gathers_.resize(whole_.size());
    // Which groups publish() gathers follows from the training step, also in an evaluation. That one runs
    // after a step, so that these groups have been gathered already.
    const std::vector<size_t> in_step = used_at(step.positions_of_step());
    for (size_t group = 0; group < whole_.size(); ++group) {
      is_published_.push_back(in_step[group] < kAhead);
      if (!is_published_[group]) late_.push_back(group);
    }
    used_at_ = used_at(step.positions());
    std::stable_sort(late_.begin(), late_.end(),
                     [&](size_t a, size_t b) { return used_at_[a] < used_at_[b]; });
  }

  const ModelShards& own() const { return own_; }
  // Starts the gathers of the groups that are needed soon, and waits for those that are needed now. The
  // numbers of the calls that publish() starts in the step before are known only there.
  void before(const Position& at) override {
    for (; num_started_ < late_.size() && used_at_[late_[num_started_]] <= position_ + kAhead;
         ++num_started_) {
      const size_t group = late_[num_started_];
      gathers_[group] = step_.unshard(group, whole_[group], own_);
    }
    ++position_;
    for (const size_t group : at.first_used) {
      if (is_published_[group])
        waits_.emplace_back(group, step_.wait_for_step_before());
      else
        step_.wait(gathers_[group]);
    }
  }
  void publish() override {
    for (size_t group = 0; group < whole_.size(); ++group)
      if (is_published_[group]) gathers_[group] = step_.unshard(group, whole_[group], own_);
    for (const auto& [group, wait] : waits_) step_.fill_in(wait, gathers_[group]);
  }

 private:
  static constexpr size_t kAhead = 3;  // positions of the schedule: the batch is loaded at the first one

  // [group]: the position that uses it first.
  std::vector<size_t> used_at(const std::vector<Position>& positions) const {
    std::vector<size_t> used_at(whole_.size(), 0);
    for (size_t position = 0; position < positions.size(); ++position)
      for (const size_t group : positions[position].first_used) used_at[group] = position;
    return used_at;
  }

  StepBuilder& step_;
  std::vector<Slice> whole_;
  ModelShards own_;
  std::vector<size_t> used_at_;
  std::vector<bool> is_published_;                // [group]: gathered right after the update
  std::vector<size_t> late_;                      // the other groups, in the order of their use
  std::vector<Operations> gathers_;               // [group]
  std::vector<std::pair<size_t, size_t>> waits_;  // group, instruction
  size_t position_ = 0, num_started_ = 0;         // num_started_: of late_
};

// How ZeRO-1 holds gradients: whole on every rank. Micro-batches are added up in the type that is sent, and
// reduced once, after the last one.
class WholeGradients : public ShardingPolicy {
 public:
  explicit WholeGradients(StepBuilder& step)
      : step_(step), whole_(step.allocate_groups("gradients", Use::gradients, Element::compute)) {
    const specs::ElementBytes& bytes = step.input().bytes;
    sent_ = bytes.converts() ? step.allocate_groups("gradients, converted", Use::transient, Element::reduce)
                             : whole_;
    own_ = bytes.mixed() ? step.allocate_shards("main gradients", Use::gradients, Element::master)
                         : step.shards_of(whole_);
    for (size_t group = 0; group < whole_.size(); ++group) step.place_gradients(group, whole_[group]);
  }

  const ModelShards& own() const { return own_; }
  void after(const Position& at) override {
    for (const size_t group : at.complete) {
      if (sent_[group] != whole_[group]) {
        step_.add(sent_[group], whole_[group]);
        step_.zero(whole_[group]);
      }
      if (at.is_last) reductions_.push_back(step_.reduce(group, sent_[group]));
    }
  }
  void finish() override {
    for (Operations& reduction : reductions_) step_.wait(reduction);
    std::vector<Operations> of_replicas;
    for (size_t group = 0; group < whole_.size(); ++group) {
      if (step_.input().bytes.mixed())
        step_.copy(own_.of[group], step_.shard_of(step_.layout()[group], sent_[group]));
      of_replicas.push_back(step_.sum_over_replicas(group, own_.of[group]));
    }
    for (Operations& sum : of_replicas) step_.wait(sum);
  }
  void publish() override { step_.zero(StepBuilder::all_of(sent_)); }

 private:
  StepBuilder& step_;
  std::vector<Slice> whole_, sent_;
  ModelShards own_;
  std::vector<Operations> reductions_;
};

}  // namespace

// At the first action of a use: starts the gathers of the next uses, as many as there are slots, waits for
// this use's own gather, and binds the parameters to its slot.
void ShardedParameters::before(const Position& at) {
  for (Operations& root : of_roots_) step_.wait(root);
  if (!at.uses_units() || num_done_ > 0) return;
  const UnitUse& use = uses_[now_];
  unshard_until(now_ + slots_.size());
  for (Operations& unshard : unshards_[static_cast<size_t>(use.slot)]) step_.wait(unshard);
  if (!use.unshards) return;
  for (const size_t group : use.groups) step_.bind_parameters(group, slot_of(use, group));
}

// After a micro-batch was loaded, gathers the root groups (once a step) and the first units. After the last
// action of a use, the units give up their slot if others need it.
void ShardedParameters::after(const Position& at) {
  if (at.is(Compute::load)) {
    for (size_t i = of_roots_.size(); i < roots_.size(); ++i)
      of_roots_.push_back(step_.unshard(step_.roots()[i], roots_[i], shards_));
    unshard_until(now_ + 1);
  }
  if (!at.uses_units()) return;
  const UnitUse& use = uses_[now_];
  if (++num_done_ < use.num_actions) return;
  if (use.reshards)
    for (const size_t group : use.groups) step_.reshard(group);
  ++now_;
  num_done_ = 0;
}

// Starts the gathers of all uses before `end` whose units are not in their slot yet, in the order of the
// uses.
void ShardedParameters::unshard_until(size_t end) {
  for (; num_unsharded_ < std::min(end, uses_.size()); ++num_unsharded_) {
    const UnitUse& use = uses_[num_unsharded_];
    if (!use.unshards) continue;
    std::vector<Operations>& unshards = unshards_[static_cast<size_t>(use.slot)];
    unshards.clear();
    for (const size_t group : use.groups)
      unshards.push_back(step_.unshard(group, slot_of(use, group), shards_for(use)));
  }
}

void ShardedGradients::before(const Position& at) {
  if (!at.begin.empty() && !at.units.empty()) {
    // The two slots take turns. While the gradients of one block are reduced out of one slot, the next
    // block's backward fills the other.
    Slot& next = slots_[next_++ % slots_.size()];
    for (const size_t unit : at.units) slot_of_[unit] = &next;
  }
  for (const size_t group : at.begin) {
    if (is_of_several_chunks(group) && !begun_.insert(group).second) continue;
    const bool is_unit = std::count(at.units.begin(), at.units.end(), group) > 0;
    Slot& slot = *slot_of_[group];
    // What the slot held is waited for and added to the shards first. A group of several chunks keeps
    // adding to the same memory, so that it is zeroed once a step.
    add_up(slot);  // what was in the slot before
    const Slice whole = step_.unit_in(slot.memory, group);
    if (is_unit) step_.bind_gradients(group, whole);
    step_.zero(whole);
  }
}

// Where the first and the last part of the model are on one rank and share an embedding, the gradient of a
// micro-batch is complete at the first part when that of the next has begun at the last. Such gradients are
// added up in the type that is sent, and reduced once.
void ShardedGradients::after(const Position& at) {
  for (const size_t group : at.complete) {
    const bool once = is_of_several_chunks(group);
    Slot& slot = *slot_of_[group];
    const Slice sent = step_.unit_in(slot.sent, group), memory = step_.unit_in(slot.memory, group);
    if (slot.sent != slot.memory) {
      if (once && !at.is_first)
        step_.add(sent, memory);
      else
        step_.copy(sent, memory);
      if (once) step_.zero(memory);
    }
    if (once && !at.is_last) continue;
    slot.reductions.push_back({group, step_.reduce(group, sent), once || at.is_first, at.is_last});
  }
}

void ShardedGradients::add_up(Slot& slot) {
  for (auto& [group, operations, is_first, is_last] : slot.reductions) {
    step_.wait(operations);
    const Shard sum = step_.shard_of(step_.layout()[group], step_.unit_in(slot.sent, group));
    const Shard& own = own_.of[group];
    if (is_first)
      step_.copy(own, sum);
    else
      step_.add(own, sum);
    if (is_last) of_replicas_.push_back(step_.sum_over_replicas(group, own));
  }
  slot.reductions.clear();
}

void ShardedGradients::finish() {
  for (size_t i = 0; i < slots_.size(); ++i) add_up(slots_[next_++ % slots_.size()]);  // the older slot first
  for (Slot& root : roots_) add_up(root);
  for (Operations& sum : of_replicas_) step_.wait(sum);
}

// Memory.

std::vector<UnitUse> unit_uses(const std::vector<Position>& positions, int64_t num_slots) {
  std::vector<UnitUse> uses;
  std::vector<size_t> blocks;
  for (const Position& at : positions) {
    if (!at.uses_units()) continue;
    const auto block = static_cast<size_t>(at.action.block);
    // Consecutive actions of one block, such as its recomputation and its backward, are one use of its
    // parameters.
    if (!blocks.empty() && blocks.back() == block) {
      ++uses.back().num_actions;
      continue;
    }
    blocks.push_back(block);
    uses.push_back({{}, at.units, at.action.what});
  }
  const std::vector<SlotUse> planned = plan_slots(blocks, num_slots);
  for (size_t use = 0; use < uses.size(); ++use) static_cast<SlotUse&>(uses[use]) = planned[use];
  return uses;
}

ShardedParameters::ShardedParameters(StepBuilder& step, ModelShards shards)
    : step_(step), shards_(std::move(shards)) {
  const int64_t num_slots = step.input().options.at("prefetch").get<int64_t>() + 1;
  for (int64_t i = 0; i < num_slots; ++i)
    slots_.push_back(step.allocate("parameter slot " + std::to_string(i), Use::transient, Element::compute,
                                   step.largest_units()));
  for (const size_t root : step.roots()) {
    roots_.push_back(
        step.allocate("root group's slot", Use::transient, Element::compute, step.numel_of(root)));
    step.place_parameters(root, roots_.back());
  }
  uses_ = unit_uses(step.positions(), num_slots);
  unshards_.resize(slots_.size());
}

Slice ShardedParameters::slot_of(const UnitUse& use, size_t group) const {
  return step_.unit_in(slots_[static_cast<size_t>(use.slot)], group);
}

ShardedGradients::ShardedGradients(StepBuilder& step)
    : step_(step), own_(step.allocate_shards("gradients", Use::gradients, Element::master)) {
  // While one slot is reduced, the other one is filled.
  for (const char* name : {"gradient slot 0", "gradient slot 1"})
    slots_.push_back(allocate_slot(name, step.largest_units()));
  for (const size_t root : step.roots()) {
    roots_.push_back(allocate_slot("root group's gradients", step.numel_of(root)));
    step.place_gradients(root, roots_.back().memory);
  }
  slot_of_.resize(step.layout().size());
  for (size_t i = 0; i < roots_.size(); ++i) slot_of_[step.roots()[i]] = &roots_[i];
}

bool ShardedGradients::is_of_several_chunks(size_t group) const {
  const specs::GroupSpec& spec = step_.input().model.groups[group];
  const std::vector<specs::Chunk> chunks = step_.input().all_chunks();
  return std::none_of(chunks.begin(), chunks.end(), [&](const specs::Chunk& chunk) {
    return spec.first_block >= chunk.begin && spec.last_block < chunk.end;
  });
}

ShardedGradients::Slot ShardedGradients::allocate_slot(const std::string& name, int64_t numel) {
  const Slice memory = step_.allocate(name, Use::transient, Element::compute, numel);
  if (!step_.input().bytes.converts()) return {memory, memory};
  return {memory, step_.allocate(name + ", converted", Use::transient, Element::reduce, numel)};
}

namespace fsdp {
namespace {

Program write(const StepInput& input, const Schedule& schedule) {
  StepBuilder step("fsdp", input, schedule,
                   specs::fsdp_layout(input.model, input.sharded_over(group_size(input)), input.options));
  const auto shard = input.options.at("shard").get<std::string>();
  if (shard == "full") {
    ShardedParameters parameters(step, step.allocate_shards("parameters", Use::parameters, Element::master));
    ShardedGradients gradients(step);
    step.updates(parameters.own(), gradients.own());
    return write_step(step, {&parameters, &gradients});
  }
  WholeParameters parameters(step);
  if (shard == "gradients") {
    ShardedGradients gradients(step);
    step.updates(parameters.own(), gradients.own());
    return write_step(step, {&parameters, &gradients});
  }
  WholeGradients gradients(step);
  step.updates(parameters.own(), gradients.own());
  return write_step(step, {&parameters, &gradients});
}

// A rank that does not hold whole gradients must reduce after every micro-batch.
Cost paper(const StepInput& input) {
  const Sizes s(input);
  const auto shard = input.options.at("shard").get<std::string>();
  const auto parts = static_cast<double>(group_size(input)), p = s.parameters;
  Cost cost = sharded_cost(s, parts, input.options);
  double gathered = s.roots + gathered_forward(s, input.options) + gathered_backward(s, input.options);
  if (shard != "full") {
    const double master_share = s.copy > 0 ? p / parts * s.master : 0;
    cost.parameter_bytes = p * s.compute + master_share;
    cost.transient_bytes = gradient_slot_bytes(s);
    gathered = p;
    if (shard == "optimizer") {
      cost.gradient_bytes = p * s.compute + master_share;
      cost.transient_bytes = p * s.converted;
    }
  }
  const double reduced = shard == "optimizer" ? p : s.micro_batches * p;
  cost.traffic_bytes = ring(parts) * (gathered * s.compute + reduced * s.reduce) +
                       2 * ring(s.ranks / parts) * p / parts * s.master;
  return cost;
}

const OptionTable kOptions = {
    {"shard",
     OptionType::text,
     "full",
     "what is sharded: everything, gradients and optimizer state, or optimizer state",
     {"full", "gradients", "optimizer"}},
    {"layout",
     OptionType::text,
     "flat",
     "where shards begin: anywhere in a block, one operation; or at rows of each tensor, one operation each",
     {"flat", "dim0"}},
    {"prefetch", OptionType::integer, 1, "blocks prefetched (shard: full)", {}, 0, 64},
    {"group", OptionType::integer, 0, "ranks that shard one replica, as in HSDP; 0: all ranks", {}, 0},
    offload_option(),
};

const Registration<Strategy> registered{
    "fsdp",
    {"sharded within tensors: 1/N of every block on each rank, gathered when used", kOptions, write, paper,
     group_must_divide}};

}  // namespace
}  // namespace fsdp
}  // namespace shardmark::strategies
