// A program bound to memory and communicators: what a rank does to its memory and sends to others, between
// the blocks that it computes.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "executor/memory.h"
#include "executor/reductions/reduction.h"

namespace shardmark {

// The communicators of programs' teams, split off one of all ranks. They share its accounts. A team of one
// rank has no part of the transport: comm/alone.h.
class Teams {
 public:
  // Collective, and so is the end: NCCL's ranks of a node wait for each other in it.
  Teams(Communicator& all, const std::vector<strategies::TeamUse>& teams);
  Communicator& of(const strategies::TeamUse& use) const;  // one of those

 private:
  bool is_all(const strategies::TeamUse& use) const { return use == strategies::TeamUse{{all_.size(), 1}}; }
  Communicator& all_;
  std::unique_ptr<Communicator> alone_;  // of all teams of one rank
  std::vector<std::pair<strategies::TeamUse, std::unique_ptr<Communicator>>> teams_;
};

class BoundProgram {
 public:
  // reduction: of ddp, else nullptr. Everything must outlive this.
  BoundProgram(strategies::Program program, ProgramMemory& memory, const Teams& teams,
               ReductionKernels* reduction);

  const strategies::Program& program() const { return program_; }
  // Instruction i, which starts calls or waits for them.
  void communicate(size_t i);
  bool is_inside_block(size_t i) const {
    return program_.calls[static_cast<size_t>(program_.instructions[i].index)].inside_block.has_value();
  }
  // The calls inside the block that instruction i computes: the block makes one after the other, on values of
  // its own; those that it did not make, because it failed, are made for it.
  void begin_block(size_t i) { next_inside_ = i + 1; }
  void call_inside_block(specs::Dimension dimension, Collective what, const at::Tensor& out,
                         const at::Tensor& in);
  void end_block();
  // Instruction i, which is local.
  void run_locally(size_t i);
  void poll();      // moves what is in flight
  void wait_all();  // for what is in flight, at the end of a step too

 private:
  struct BoundCall {
    Communicator* comm;
    Call call;  // made once: a step looks nothing up and allocates nothing
    Work work;
  };
  struct BoundInstruction {
    at::Tensor to, from;
  };
  BoundCall bound(const strategies::CollectiveCall& call, const Teams& teams) const;
  int64_t dimension_of(const BoundCall& call) const;
  BoundCall* next_inside_block();  // nullptr: it has none

  strategies::Program program_;
  ProgramMemory& memory_;
  ReductionKernels* reduction_;
  std::vector<BoundCall> calls_;                // parallel to the program's calls
  std::vector<BoundInstruction> instructions_;  // parallel to the program's instructions
  std::vector<at::Tensor> gradients_;           // whose squares this rank counts
  std::vector<Communicator*> communicators_;    // each once
  size_t next_inside_ = 0;                      // instruction: starts the block's next call, if it has one
};

// What stands for a call of a block where ranks compute alone: its sizes, of values that blocks can compute
// with.
void stand_in(Collective what, const at::Tensor& out, const at::Tensor& in);

}  // namespace shardmark
