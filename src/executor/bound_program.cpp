// Instructions on tensors.
#include "executor/bound_program.h"

#include <algorithm>

namespace shardmark {

using strategies::Instruction;
using What = Instruction::What;

// Ranks are assigned to teams in blocks of ranks x stride neighbours.
Teams::Teams(Communicator& all, const std::vector<strategies::Team>& teams) : all_(all) {
  for (const strategies::Team& team : teams) {
    auto& part = teams_[{team.ranks, team.stride}];
    if (part || is_all(team)) continue;
    const int64_t rank = all_.rank(), block = team.ranks * team.stride;
    part = all_.split(static_cast<int>(rank / block * team.stride + rank % team.stride), all_.rank());
    part->count_in(all_);
  }
}

Communicator& Teams::of(const strategies::Team& team) const {
  return is_all(team) ? all_ : *teams_.at({team.ranks, team.stride});
}

BoundProgram::BoundProgram(strategies::Program program, ProgramMemory& memory, const Teams& teams,
                           ReductionKernels* reduction)
    : program_(std::move(program)), memory_(memory), reduction_(reduction) {
  for (const strategies::Call& call : program_.calls) {
    calls_.push_back(bound(call, teams));
    if (std::find(communicators_.begin(), communicators_.end(), calls_.back().comm) == communicators_.end())
      communicators_.push_back(calls_.back().comm);
  }
  for (const Instruction& instruction : program_.instructions)
    instructions_.push_back({memory.at(instruction.to), memory.at(instruction.from)});
  for (const strategies::Updated& shard : program_.updated) gradients_.push_back(memory.at(shard.gradients));
}

BoundProgram::BoundCall BoundProgram::bound(const strategies::Call& call, const Teams& teams) const {
  return {&teams.of(call.team),
          {call.what, memory_.at(call.out), memory_.at(call.in), ReduceOp::sum, static_cast<int>(call.root)},
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
    case What::compress:
      return reduction_->run(static_cast<strategies::Stage>(instruction.count),
                             static_cast<size_t>(instruction.index));
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
