// A step over sharded parameters, gradients and optimizer state: the loop, and who holds what. A strategy
// takes a kind of parameters and a kind of gradients: fsdp.cpp, zero3.cpp, hpz.cpp.
#pragma once

#include <algorithm>

#include "strategies/step_builder.h"

namespace shardmark::strategies {

// own() is what this rank updates. Where it does not train: the forward of an evaluation.
template <class Parameters, class Gradients>
Program sharded_step(StepBuilder& step, Parameters parameters, Gradients gradients, bool trains) {
  step.updates(parameters.own(), gradients.own());
  for (int64_t m = 0; m < (trains ? step.input().accumulation : 1); ++m) {
    step.load();
    if (trains) gradients.begin_micro_batch(m);
    parameters.begin_micro_batch(m);
    for (int64_t block = 0; block < step.num_blocks(); ++block) {
      parameters.before_forward(block);
      step.forward(block);
      if (trains) parameters.after_forward(block);
    }
    for (int64_t block = step.num_blocks() - 1; trains && block >= 0; --block) {
      parameters.before_backward(block);
      gradients.before_backward(block);
      step.backward(block);
      gradients.after_backward(block);
    }
  }
  if (trains) {
    gradients.finish();
    step.update(step.team());
    gradients.after_update();
    parameters.after_update();
  }
  return step.finish();
}

// Parameters that a rank holds only its shard of: gathered into a slot before their block computes.
//
// Note [Slots]: the uses of a micro-batch are a fixed sequence: every unit (a group of one block) forward,
// then every unit but the last backward (the last stays gathered in between). Use i lives in slot i mod
// (prefetch + 1). When use i begins, use i - 1 is over, and its slot is the one of use i + prefetch: so that
// gather starts then. Root groups have slots of their own and stay through a step.
class ParameterSlots {
 public:
  // for_backward: other shards to gather from in backward, which forward leaves behind; none: the same.
  ParameterSlots(StepBuilder& step, Shards shards, bool trains, std::optional<Shards> for_backward = {})
      : step_(step),
        shards_(std::move(shards)),
        for_backward_(std::move(for_backward)),
        num_units_(std::ssize(step.schedule().units)),
        num_uses_(trains ? 2 * num_units_ - 1 : num_units_),
        num_slots_(step.input().options.at("prefetch").get<int64_t>() + 1),
        gathers_(static_cast<size_t>(num_slots_)) {
    for (int64_t i = 0; i < num_slots_; ++i)
      slots_.push_back(step.allocate("parameter slot " + std::to_string(i), Use::transient, Element::compute,
                                     step.largest_group()));
    for (const size_t root : step.schedule().roots) {
      roots_.push_back(
          step.allocate("root group's slot", Use::transient, Element::compute, step.numel_of(root)));
      step.place_parameters(root, roots_.back());
    }
  }

  const Shards& own() const { return shards_; }
  void begin_micro_batch(int64_t index) {
    num_started_ = 0;
    for (size_t i = 0; i < roots_.size() && index == 0; ++i)
      of_roots_.push_back(step_.unshard(step_.schedule().roots[i], roots_[i], shards_));
    start_until(0, 0);
  }
  void before_forward(int64_t block) {
    for (Operations& root : of_roots_) step_.wait(root);
    use(step_.unit_of(block));
  }
  void after_forward(int64_t) {}
  void before_backward(int64_t block) {
    if (step_.unit_of(block) >= 0) use(2 * (num_units_ - 1) - step_.unit_of(block));
  }
  void after_update() {}

  // Where the unit of a block is gathered for its forward, and whether it is gathered again for backward.
  Slice forward_slot(int64_t block) const { return slot_at(step_.unit_of(block)); }
  bool is_gathered_again(int64_t block) const {
    return step_.unit_of(block) >= 0 && step_.unit_of(block) + 1 < num_units_;
  }

 private:
  // Which unit the use at this position of the sequence is of.
  int64_t unit_at(int64_t position) const {
    return position < num_units_ ? position : 2 * (num_units_ - 1) - position;
  }
  size_t group_at(int64_t position) const { return step_.group_of_unit(unit_at(position)); }
  Slice slot_at(int64_t position) const {
    return slots_[static_cast<size_t>(position % num_slots_)].first(step_.numel_of(group_at(position)));
  }
  Operations& gather_at(int64_t position) { return gathers_[static_cast<size_t>(position % num_slots_)]; }

  // Starts the gathers of all uses up to the last, in order; what a forward leaves behind is there after it.
  void start_until(int64_t last, int64_t now) {
    for (; num_started_ <= last && num_started_ < num_uses_; ++num_started_) {
      const bool again = for_backward_ && num_started_ >= num_units_;
      if (again && unit_at(num_started_) >= now) return;
      gather_at(num_started_) =
          step_.unshard(group_at(num_started_), slot_at(num_started_), again ? *for_backward_ : shards_);
    }
  }
  void use(int64_t position) {
    if (position < 0) return;
    start_until(position + num_slots_ - 1, position);
    step_.wait(gather_at(position));
    step_.bind_parameters(group_at(position), slot_at(position));
  }

  StepBuilder& step_;
  Shards shards_;
  std::optional<Shards> for_backward_;
  int64_t num_units_, num_uses_, num_slots_;
  std::vector<Slice> slots_, roots_;  // [slot], [root group]
  std::vector<Operations> gathers_;   // [slot]: into it
  std::vector<Operations> of_roots_;
  int64_t num_started_ = 0;  // uses of this micro-batch whose gather has started
};

// Gradients that a rank keeps only its shard of: backward of a block fills a slot, which is reduced to the
// owners while the next block computes into the other slot. Every micro-batch reduces, and the owner adds up;
// with the last one, replicas add up theirs.
class GradientSlots {
 public:
  explicit GradientSlots(StepBuilder& step)
      : step_(step), own_(step.allocate_shards("gradients", Use::gradients, Element::master)) {
    for (const char* name : {"gradient slot 0", "gradient slot 1"})  // one is reduced, the other filled
      slots_.push_back(allocate_slot(name, step.largest_group(), 0));
    for (const size_t root : step.schedule().roots) {
      roots_.push_back(allocate_slot("root group's gradients", step.numel_of(root), root));
      step.place_gradients(root, roots_.back().memory);
    }
  }

  const Shards& own() const { return own_; }
  void begin_micro_batch(int64_t index) {
    finish();  // of the micro-batch before
    first_ = index == 0;
    last_ = index + 1 == step_.input().accumulation;
    next_ = 0;
    for (const Slot& root : roots_) step_.zero(root.memory);
  }
  void before_backward(int64_t block) {
    if (step_.unit_of(block) < 0) return;
    Slot& slot = slots_[next_ % slots_.size()];
    finish(slot);
    slot.group = step_.group_of_unit(step_.unit_of(block));
    const Slice whole = slot.memory.first(step_.numel_of(slot.group));
    step_.bind_gradients(slot.group, whole);
    step_.zero(whole);
  }
  void after_backward(int64_t block) {
    for (const size_t group : step_.complete_after(block)) {
      const auto root = std::find_if(roots_.begin(), roots_.end(), [&](auto& r) { return r.group == group; });
      Slot& slot = root != roots_.end() ? *root : slots_[next_++ % slots_.size()];
      const Slice sent = slot.sent.first(step_.numel_of(group));
      if (slot.sent != slot.memory) step_.copy(sent, slot.memory.first(sent.numel));
      slot.reduction = step_.reduce(group, sent);
    }
  }
  void finish() {
    for (Slot& slot : slots_) finish(slot);
    for (Slot& root : roots_) finish(root);
    for (Operations& sum : of_replicas_) step_.wait(sum);
  }
  void after_update() {}

 private:
  struct Slot {
    Slice memory, sent;  // as the block computes, and as gradients travel: the same, or converted
    size_t group;        // that is in it
    Operations reduction = {};
  };
  Slot allocate_slot(const std::string& name, int64_t numel, size_t group) {
    const Slice memory = step_.allocate(name, Use::transient, Element::compute, numel);
    if (!step_.input().bytes.converts()) return {memory, memory, group};
    return {memory, step_.allocate(name + ", converted", Use::transient, Element::reduce, numel), group};
  }
  void finish(Slot& slot) {
    if (slot.reduction.count == 0) return;
    step_.wait(slot.reduction);
    const Shard sum = step_.shard_of(step_.layout()[slot.group], slot.sent);
    const Shard& own = own_.of[slot.group];
    if (first_)
      step_.copy(own, sum);
    else
      step_.add(own, sum);
    if (last_) of_replicas_.push_back(step_.sum_over_replicas(slot.group, own));
  }

  StepBuilder& step_;
  Shards own_;
  std::vector<Slot> slots_, roots_;
  size_t next_ = 0;  // slot, counted through the micro-batch
  bool first_ = true, last_ = true;
  std::vector<Operations> of_replicas_;
};

// Whole parameters on every rank: each updates its shards, and the shards are gathered in place while the
// next forward already begins.
class WholeParameters {
 public:
  explicit WholeParameters(StepBuilder& step)
      : step_(step), whole_(step.allocate_groups("parameters", Use::parameters, Element::compute)) {
    step.replicated(StepBuilder::all_of(whole_));
    own_ = step.input().bytes.mixed()
               ? step.allocate_shards("master parameters", Use::parameters, Element::master)
               : step.shards_of(whole_);
    for (size_t group = 0; group < whole_.size(); ++group) step.place_parameters(group, whole_[group]);
  }

  const Shards& own() const { return own_; }
  void begin_micro_batch(int64_t index) { first_ = index == 0; }
  void before_forward(int64_t block) {
    for (size_t group = 0; group < whole_.size() && first_; ++group)
      if (step_.input().model.groups[group].first_block == block)
        waits_.emplace_back(group, step_.wait_for_step_before());
  }
  void after_forward(int64_t) {}
  void before_backward(int64_t) {}
  void after_update() {
    std::vector<Operations> gathers;
    for (size_t group = 0; group < whole_.size(); ++group)
      gathers.push_back(step_.unshard(group, whole_[group], own_));
    for (const auto& [group, wait] : waits_) step_.fill_in(wait, gathers[group]);
  }

 private:
  StepBuilder& step_;
  std::vector<Slice> whole_;
  Shards own_;
  bool first_ = true;                             // micro-batch
  std::vector<std::pair<size_t, size_t>> waits_;  // group, instruction
};

// Whole gradients on every rank, to which micro-batches add up in the type that is reduced; reduced with the
// last one.
class WholeGradients {
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

  const Shards& own() const { return own_; }
  void begin_micro_batch(int64_t index) { last_ = index + 1 == step_.input().accumulation; }
  void before_backward(int64_t) {}
  void after_backward(int64_t block) {
    for (const size_t group : step_.complete_after(block)) {
      if (sent_[group] != whole_[group]) {
        step_.add(sent_[group], whole_[group]);
        step_.zero(whole_[group]);
      }
      if (last_) reductions_.push_back(step_.reduce(group, sent_[group]));
    }
  }
  void finish() {
    for (Operations& reduction : reductions_) step_.wait(reduction);
    std::vector<Operations> of_replicas;
    for (size_t group = 0; group < whole_.size(); ++group) {
      if (step_.input().bytes.mixed())
        step_.copy(own_.of[group], step_.shard_of(step_.layout()[group], sent_[group]));
      of_replicas.push_back(step_.sum_over_replicas(group, own_.of[group]));
    }
    for (Operations& sum : of_replicas) step_.wait(sum);
  }
  void after_update() { step_.zero(StepBuilder::all_of(sent_)); }

 private:
  StepBuilder& step_;
  std::vector<Slice> whole_, sent_;
  Shards own_;
  bool last_ = true;  // micro-batch
  std::vector<Operations> reductions_;
};

}  // namespace shardmark::strategies
