// The builder that strategies write the program of a step with: it allocates memory, and appends instructions
// in the order in which its functions are called. Which memory a value lies in is decided while the program
// is written, as a compiler allocates registers, so that nothing is decided while a step runs.
#pragma once

#include <initializer_list>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Consecutive calls of the program that started together.
struct Operations {
  int64_t first = 0;
  int64_t count = 0;
};

// The shards of all groups: how each group is sharded, and where this rank's shards lie.
struct ModelShards {
  std::vector<GroupLayout> layout;
  std::vector<Shard> of;  // [group]
};

class StepBuilder {
 public:
  // `layout` says how each group of the model is sharded, and over which process group. `regrouped` is the
  // model with its parameters in other groups than its own, if the strategy wants that.
  StepBuilder(std::string strategy, const StepInput& input, const Schedule& schedule,
              std::optional<ModelTable> regrouped, std::vector<GroupLayout> layout);
  StepBuilder(std::string strategy, const StepInput& input, const Schedule& schedule,
              std::vector<GroupLayout> layout)
      : StepBuilder(std::move(strategy), input, schedule, std::nullopt, std::move(layout)) {}
  StepBuilder(const StepBuilder&) = delete;
  StepBuilder& operator=(const StepBuilder&) = delete;

  const StepInput& input() const { return input_; }
  const std::vector<Position>& positions() const { return positions_; }
  bool trains() const { return trains_; }  // false: the program is an evaluation
  // The positions of a full training step, even if this program is an evaluation.
  std::vector<Position> positions_of_step() const {
    return strategies::positions(input_.schedule(), input_.model);
  }
  const std::vector<GroupLayout>& layout() const { return program_.layout; }
  const std::vector<size_t>& roots() const { return roots_; }  // groups that several blocks use
  int64_t num_blocks() const { return std::ssize(input_.model.blocks); }
  int64_t numel_of(size_t group) const { return program_.layout[group].numel; }
  // The elements of groups that have their rank's own experts. They end every buffer of whole groups.
  int64_t numel_of_experts() const;
  // The most elements that the units of a block have: its groups that are no root groups. They share a slot,
  // in which unit_in() says where each lies.
  int64_t largest_units() const { return largest_units_; }
  Slice unit_in(Slice slot, size_t group) const { return slot.part({unit_begins_[group], numel_of(group)}); }
  ProcessGroup all() const { return input_.all(); }
  // The process group over which one copy of the parameters is sharded, apart from those of experts that
  // other ranks do not have.
  ProcessGroup process_group() const {
    return program_.layout.empty() ? all() : program_.layout.front().process_group;
  }

  // Memory.
  Slice allocate(std::string name, Use use, Element element, int64_t numel);
  // Returns [group]. In memory, groups lie in backward order.
  std::vector<Slice> allocate_groups(std::string name, Use use, Element element);
  // What this rank owns of every group: allocated by itself, or as views of whole groups.
  ModelShards allocate_shards(std::string name, Use use, Element element,
                              const std::vector<GroupLayout>& layout);
  ModelShards allocate_shards(std::string name, Use use, Element element) {
    return allocate_shards(std::move(name), use, element, program_.layout);
  }
  ModelShards shards_of(const std::vector<Slice>& groups) const;
  Shard shard_of(const GroupLayout& layout, Slice whole) const;
  static Slice all_of(const std::vector<Slice>& groups);  // the memory of all groups together
  // Declares that the slice, which begins a buffer, holds the same bits on all ranks between steps.
  void replicated(Slice slice) {
    program_.buffers[static_cast<size_t>(slice.buffer)].num_replicated = slice.numel;
  }
  // Declares that the next step needs the buffer's contents, in addition to parameters and optimizer state.
  void carried(Slice slice) { program_.buffers[static_cast<size_t>(slice.buffer)].carried = true; }
  double bytes_of(Slice slice) const;

  // Computing.
  void begin(const Action& action);  // the instructions that follow belong to this action
  void compute(const Action& action);
  // Where the next block to compute finds its received input (or the gradient of its output), and where it
  // leaves the output (or the gradient of its input) that is to be sent.
  void takes(Slice message) { takes_ = message; }
  void gives(Slice message) { gives_ = message; }
  void update();  // clipping and the optimizer; what follows is part of `publish`

  // Says where a group lies: place_* for the whole program, bind_* from this instruction on.
  void place_parameters(size_t group, Slice whole) { program_.parameters[group] = whole; }
  void place_gradients(size_t group, Slice whole) { program_.gradients[group] = whole; }
  void bind_parameters(size_t group, Slice whole) {
    add({What::bind, static_cast<int64_t>(group), 1, whole});
  }
  void reshard(size_t group) { add({What::reshard, static_cast<int64_t>(group)}); }
  void bind_gradients(size_t group, Slice whole) {
    add({What::bind_gradients, static_cast<int64_t>(group), 1, whole});
  }

  // Local work. Shards are copied and added segment by segment; empty segments cost nothing.
  void copy(Slice to, Slice from) { local(What::copy, to, from); }
  void add(Slice to, Slice from) { local(What::add, to, from); }
  void copy(const Shard& to, const Shard& from);
  void add(const Shard& to, const Shard& from);
  void zero(Slice to) { add({What::zero, 0, 1, to}); }
  // `what` is pack, combine or unpack.
  void reduction(Instruction::What what, size_t bucket) { add({what, static_cast<int64_t>(bucket)}); }

  // Communication. The calls of one function start together, and the caller must wait for them. unshard
  // gathers a group: every rank fills `whole` from the shards of all ranks, and a shard of another element
  // type is converted first. reduce sums `whole` over the process group, and each rank gets the sum for its
  // own shard of it.
  Operations unshard(size_t group, Slice whole, const ModelShards& shards);
  Operations reduce(size_t group, Slice whole);
  CollectiveCall call(Collective what, Slice out, Slice in) const;  // over all ranks
  CollectiveCall call(Collective what, Slice out, Slice in, ProcessGroup process_group) const;
  // Sums slices in place and skips empty ones.
  Operations all_reduce(const Shard& slices, ProcessGroup process_group, std::optional<int64_t> group = {});
  Operations sum_over_replicas(size_t group, const Shard& shard);  // none if there is one replica
  Operations start(std::vector<CollectiveCall> calls);             // in one launch
  void wait(Operations& operations);                               // empties `operations`
  // Messages to and from another rank of the pipeline, which has the part of the model after or before one of
  // this rank's. is_forward: an output; otherwise a gradient.
  Operations send(Slice message, int64_t to, bool is_forward);
  Operations receive(Slice message, int64_t from, bool is_forward);
  // Adds a wait for calls that the previous step starts late, and whose numbers are not known yet. fill_in()
  // sets them.
  size_t wait_for_step_before();
  void fill_in(size_t wait, Operations operations);

  // Says what this rank updates: its shards, or all groups as one contiguous range.
  void updates(const ModelShards& parameters, const ModelShards& gradients);
  void updates(const std::vector<Slice>& parameters, const std::vector<Slice>& gradients,
               const std::vector<Slice>& copy = {});
  Program& program() { return program_; }
  const Program& program() const { return program_; }
  Program finish();  // throws ContractError if the program is invalid (program_check.h)

 private:
  using What = Instruction::What;
  void add(Instruction instruction);
  void local(What what, Slice to, Slice from);
  void call_inside_block(const std::vector<specs::BlockCall>& calls, bool has_gradients_of_parameters);
  void allocate_for_calls_inside_blocks();
  ProcessGroup process_group_of(const specs::BlockCall& call) const;
  double bytes_of(const specs::BlockCall& call) const;
  void sum_over_tokens();
  void share_tied_gradients();
  void sum_squares();
  void set_gradients(std::vector<Shard> gradients, ProcessGroup sharded_over);
  std::vector<Slice> gradients_in_all_tensor_ranks() const;
  Element element_of(Slice slice) const {
    return program_.buffers[static_cast<size_t>(slice.buffer)].element;
  }

  Program program_;
  std::optional<ModelTable> regrouped_;
  StepInput input_;
  std::vector<Position> positions_;
  bool trains_;
  std::vector<size_t> roots_;
  std::vector<int64_t> unit_begins_;  // [group]: in the slot of its block
  int64_t largest_units_ = 0;
  StepPart part_ = StepPart::data;
  int64_t micro_batch_ = 0;
  Slice takes_, gives_;
  // The ranks that together have every gradient once, so that squares are summed over them.
  ProcessGroup squares_of_;
  std::vector<Shard> gradients_;            // [group]: what this rank updates with
  Slice from_other_end_;                    // receives the gradients of tied groups
  std::vector<Slice> in_all_tensor_ranks_;  // gradients that all tensor-parallel ranks have
  Slice packed_;                            // memory in which these are summed over ranks
};

// Options that several strategies have. Source of offload: Ren et al., ZeRO-Offload, ATC 2021.
OptionSpec offload_option();
OptionSpec prefetch_option();
// Returns `slices` without the ranges in `removed`.
std::vector<Slice> without(std::vector<Slice> slices, const std::vector<Slice>& removed);
// The option `group`: the number of neighbours that shard a copy of the model; 0: all ranks.
// group_must_divide() says so if it does not divide the number of ranks, or if not all ranks of a group share
// experts with as many of its ranks.
int64_t group_size(const StepInput& input);
std::string group_must_divide(const StepInput& input);

// The loop that writes one step of training, action by action: write_step(). It is the only loop over what a
// rank computes, and it asks sharding policies around every action.
//
// A sharding policy says how a rank holds parameters, gradients, or both (sharded or whole), and when it
// moves them. Each hook is called around every action of the schedule and does nothing by default.
class ShardingPolicy {
 public:
  ShardingPolicy() = default;
  ShardingPolicy(const ShardingPolicy&) = delete;
  ShardingPolicy& operator=(const ShardingPolicy&) = delete;
  virtual ~ShardingPolicy() = default;
  virtual void before(const Position&) {}
  virtual void after(const Position&) {}
  virtual void finish() {}   // afterwards, gradients are where the optimizer takes them from
  virtual void publish() {}  // afterwards, blocks see the updated parameters
};

// Asks the policies in this order before each action, and in reverse order after it. A schedule without
// backward becomes a program of forward alone.
Program write_step(StepBuilder& step, std::initializer_list<ShardingPolicy*> policies);

}  // namespace shardmark::strategies
