// Instructions on tensors.
#include "executor/bound_program.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark {

using strategies::Instruction;
using What = Instruction::What;

Teams::Teams(Communicator& all, const std::vector<strategies::TeamUse>& teams) : all_(all) {
  for (const strategies::TeamUse& use : teams) {
    const bool is_there =
        std::any_of(teams_.begin(), teams_.end(), [&](const auto& part) { return part.first == use; });
    if (is_all(use) || is_there) continue;
    auto part = all_.split(static_cast<int>(use.team.number_of(all_.rank())), all_.rank());
    part->count_in(all_);
    teams_.emplace_back(use, std::move(part));
  }
}

Communicator& Teams::of(const strategies::TeamUse& use) const {
  if (is_all(use)) return all_;
  const auto part =
      std::find_if(teams_.begin(), teams_.end(), [&](const auto& one) { return one.first == use; });
  ENSURE(part != teams_.end(), "a team that was not split off");
  return *part->second;
}

BoundProgram::BoundProgram(strategies::Program program, ProgramMemory& memory, const Teams& teams,
                           ReductionKernels* reduction)
    : program_(std::move(program)), memory_(memory), reduction_(reduction) {
  for (const strategies::CollectiveCall& call : program_.calls) {
    calls_.push_back(bound(call, teams));
    if (std::find(communicators_.begin(), communicators_.end(), calls_.back().comm) == communicators_.end())
      communicators_.push_back(calls_.back().comm);
  }
  for (const Instruction& instruction : program_.instructions)
    instructions_.push_back({memory.at(instruction.to), memory.at(instruction.from)});
  for (const strategies::OptimizerSlices& shard : program_.updated)
    gradients_.push_back(memory.at(shard.gradients));
}

BoundProgram::BoundCall BoundProgram::bound(const strategies::CollectiveCall& call,
                                            const Teams& teams) const {
  const bool inside = call.inside_block.has_value();
  const at::Tensor out = inside ? memory_.inside_block(*call.inside_block) : memory_.at(call.out);
  return {&teams.of({call.team, inside}),
          {call.what, out, inside ? out : memory_.at(call.in), ReduceOp::sum,
           static_cast<int>(call.root.value_or(0))},
          {}};
}

void BoundProgram::communicate(size_t i) {
  const Instruction& instruction = program_.instructions[i];
  BoundCall* const first = &calls_[static_cast<size_t>(instruction.index)];
  BoundCall* const end = first + instruction.count;
  if (instruction.what == What::wait) {
    for (BoundCall* call = first; call != end; ++call) call->work.wait();
    return;
  }
  OneLaunch launch(*first->comm);
  for (BoundCall* call = first; call != end; ++call) call->work = call->comm->start(call->call);
  launch.end();
}

BoundProgram::BoundCall* BoundProgram::next_inside_block() {
  if (next_inside_ >= program_.instructions.size()) return nullptr;
  const Instruction& next = program_.instructions[next_inside_];
  if (next.what != What::start || !is_inside_block(next_inside_)) return nullptr;
  next_inside_ += 2;  // its start, and the wait for it
  return &calls_[static_cast<size_t>(next.index)];
}

void BoundProgram::call_inside_block(const at::Tensor& values) {
  BoundCall* const next = next_inside_block();
  ENSURE(next != nullptr && next->call.out.sizes() == values.sizes(),
         "a block makes another call than its table says");
  Call call = next->call;
  call.out = call.in = values;
  next->comm->start(call).wait();
}

void BoundProgram::end_block() {
  while (BoundCall* const left = next_inside_block()) left->comm->start(left->call).wait();
}

void BoundProgram::run_locally(size_t i) {
  const Instruction& instruction = program_.instructions[i];
  BoundInstruction& bound = instructions_[i];
  switch (instruction.what) {
    case What::bind:
      return memory_.parameters_of(instruction.index).bind(bound.to);
    case What::bind_gradients:
      return memory_.gradients_of(instruction.index).bind(bound.to);
    case What::copy:
      bound.to.copy_(bound.from);
      return;
    case What::add:
      bound.to.add_(bound.from);
      return;
    case What::zero:
      bound.to.zero_();
      return;
    case What::pack:
      return reduction_->pack(static_cast<size_t>(instruction.index));
    case What::combine:
      return reduction_->combine(static_cast<size_t>(instruction.index));
    case What::unpack:
      return reduction_->unpack(static_cast<size_t>(instruction.index));
    case What::squares:
      bound.to.copy_(squares(gradients_, bound.to.device()).view({1}));
      return;
    default:
      return;  // the executor's
  }
}

void BoundProgram::poll() {
  for (Communicator* comm : communicators_) comm->progress();
}

void BoundProgram::wait_all() {
  for (BoundCall& call : calls_) call.work.wait();
}

}  // namespace shardmark
