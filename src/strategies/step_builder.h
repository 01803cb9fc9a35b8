// What strategies write the program of a step with: memory, computing, communication. Instructions
// are appended in the order of the calls; memory is placed when the program is written, like registers.
#pragma once

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Calls that started together, by number.
struct Operations {
  int64_t first = 0;
  int64_t count = 0;
};

// Every group cut into shards: how, and where this rank's are.
struct ModelShards {
  std::vector<GroupLayout> layout;
  std::vector<Shard> of;  // [group]
};

class StepBuilder {
 public:
  // layout: how each group of the model is cut over teams of neighbours (their number is the layout's own).
  // regrouped: the model with its parameters grouped differently.
  StepBuilder(std::string strategy, const StepInput& input, const Schedule& schedule,
              std::optional<ModelTable> regrouped, std::vector<GroupLayout> layout);
  StepBuilder(std::string strategy, const StepInput& input, const Schedule& schedule,
              std::vector<GroupLayout> layout)
      : StepBuilder(std::move(strategy), input, schedule, std::nullopt, std::move(layout)) {}
  StepBuilder(const StepBuilder&) = delete;
  StepBuilder& operator=(const StepBuilder&) = delete;

  const StepInput& input() const { return input_; }
  const std::vector<Position>& positions() const { return positions_; }
  bool trains() const { return trains_; }  // else the program is an evaluation
  // Of a training step, whatever this program is.
  std::vector<Position> positions_of_step() const {
    return strategies::positions(input_.schedule(), input_.model);
  }
  const std::vector<GroupLayout>& layout() const { return program_.layout; }
  const std::vector<size_t>& roots() const { return roots_; }  // groups that several blocks use
  int64_t num_blocks() const { return std::ssize(input_.model.blocks); }
  int64_t numel_of(size_t group) const { return program_.layout[group].numel; }
  int64_t largest_group() const { return specs::largest_group(input_.model, program_.layout); }  // of units
  Team all() const { return input_.all(); }
  // Shares one copy of its part of the model.
  Team team() const { return program_.layout.empty() ? all() : program_.layout.front().team; }
  Team replicas() const {  // have the same shards
    return {input_.ranks / team().ranks, team().stride * team().ranks};
  }

  // Memory.
  Slice allocate(std::string name, Use use, Element element, int64_t numel);
  std::vector<Slice> allocate_groups(std::string name, Use use, Element element);  // [group], backward order
  // What this rank owns of every group: in memory of its own, and in memory of whole groups.
  ModelShards allocate_shards(std::string name, Use use, Element element,
                              const std::vector<GroupLayout>& layout);
  ModelShards allocate_shards(std::string name, Use use, Element element) {
    return allocate_shards(std::move(name), use, element, program_.layout);
  }
  ModelShards shards_of(const std::vector<Slice>& groups) const;
  Shard shard_of(const GroupLayout& layout, Slice whole) const;
  static Slice all_of(const std::vector<Slice>& groups);  // the memory of all groups together
  // The same bits on all ranks between steps.
  void replicated(Slice slice) { program_.buffers[static_cast<size_t>(slice.buffer)].replicated = true; }
  // Beside parameters and the optimizer's state, what the next step needs of this one.
  void carried(Slice slice) { program_.buffers[static_cast<size_t>(slice.buffer)].carried = true; }
  double bytes_of(Slice slice) const;

  // Computing.
  void begin(const Action& action);  // what follows belongs to it
  void compute(const Action& action);
  // Where the block that computes next finds its input or its output's gradient; where it leaves its output
  // or its input's gradient.
  void takes(Slice message) { takes_ = message; }
  void gives(Slice message) { gives_ = message; }
  void update();  // clipping and the optimizer; what follows publishes the update

  // Where a group is: for good, or from here on.
  void place_parameters(size_t group, Slice whole) { program_.parameters[group] = whole; }
  void place_gradients(size_t group, Slice whole) { program_.gradients[group] = whole; }
  void bind_parameters(size_t group, Slice whole) {
    add({What::bind, static_cast<int64_t>(group), 1, whole});
  }
  void reshard(size_t group) { add({What::reshard, static_cast<int64_t>(group)}); }
  void bind_gradients(size_t group, Slice whole) {
    add({What::bind_gradients, static_cast<int64_t>(group), 1, whole});
  }

  // Local work. Shards segment by segment; empty segments cost nothing.
  void copy(Slice to, Slice from) { local(What::copy, to, from); }
  void add(Slice to, Slice from) { local(What::add, to, from); }
  void copy(const Shard& to, const Shard& from);
  void add(const Shard& to, const Shard& from);
  void zero(Slice to) { add({What::zero, 0, 1, to}); }
  // pack, combine or unpack
  void reduction(Instruction::What what, size_t bucket) { add({what, static_cast<int64_t>(bucket)}); }

  // Communication. All start at once and are to be waited for. unshard: every rank of a team fills `whole`
  // from the shards of its ranks; shards of another element are converted on the way. reduce: `whole` is
  // summed over the team into each rank's shard of it.
  Operations unshard(size_t group, Slice whole, const ModelShards& shards);
  Operations reduce(size_t group, Slice whole);
  CollectiveCall call(Collective what, Slice out, Slice in) const;  // of all ranks
  // In place, the parts not empty.
  Operations all_reduce(const Shard& slices, Team team, std::optional<int64_t> group = {});
  Operations sum_over_replicas(size_t group, const Shard& shard);  // none where there is one
  Operations start(std::vector<CollectiveCall> calls);             // in one launch
  void wait(Operations& operations);                               // which are none then
  // Between neighbours of a pipeline. is_forward: an output, which goes to the next stage; else a gradient.
  Operations send(Slice message, bool is_forward);
  Operations receive(Slice message, bool is_forward);
  // A wait for what the step before has started: where it stands, to be filled in.
  size_t wait_for_step_before();
  void fill_in(size_t wait, Operations operations);

  // What this rank updates: its shards, or all in one range.
  void updates(const ModelShards& parameters, const ModelShards& gradients);
  void updates(const std::vector<Slice>& parameters, const std::vector<Slice>& gradients,
               const std::vector<Slice>& copy = {});
  Program& program() { return program_; }
  const Program& program() const { return program_; }
  Program finish();  // a broken contract (program_check.h) ends here

 private:
  using What = Instruction::What;
  void add(Instruction instruction);
  void local(What what, Slice to, Slice from);
  void call_inside_block(const std::vector<specs::BlockCall>& calls);
  void allocate_for_calls_inside_blocks();
  Team team_of(const specs::BlockCall& call) const;
  double bytes_of(const specs::BlockCall& call) const;
  void sum_over_tokens();
  void share_tied_gradients();
  void sum_squares();
  void set_gradients(std::vector<Shard> gradients);
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
  Part part_ = Part::data;
  int64_t micro_batch_ = 0;
  Slice takes_, gives_;
  std::optional<Team> squares_of_;  // that holds every gradient once between its ranks; none: each rank does
  std::vector<Shard> gradients_;    // [group]: that this rank updates with
  Slice from_other_end_;            // gradients of tied groups
  std::vector<Slice> in_all_tensor_ranks_;  // of gradients_
  Slice packed_;                            // memory for these, where they are to be summed
};

// Options that several strategies have. Where the optimizer's state lives: Ren et al., ZeRO-Offload, ATC
// 2021.
OptionSpec offload_option();
OptionSpec prefetch_option();
// What is left of the slices.
std::vector<Slice> without(std::vector<Slice> slices, const std::vector<Slice>& removed);
// `group`: of this many neighbours each; 0: all ranks. It divides the ranks, or this says that it does not.
int64_t group_size(const StepInput& input);
std::string group_must_divide(const StepInput& input);

}  // namespace shardmark::strategies
