// A program that is bound to memory and communicators. It executes what a rank does to its memory and
// exchanges with other ranks, in between the blocks that it computes.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "executor/memory.h"
#include "executor/reductions/reduction.h"

namespace shardmark {

// The communicators of the process groups that programs use, split off the communicator of all ranks. Their
// traffic is counted there. A process group of one rank needs no transport: comm/transports.h.
class ProcessGroups {
 public:
  // Construction is collective, and so is destruction, in which NCCL's ranks of a node wait for each other.
  ProcessGroups(Communicator& all, const std::vector<strategies::ProcessGroupUse>& process_groups);
  Communicator& of(const strategies::ProcessGroupUse& use) const;  // one of those given to the constructor

 private:
  bool is_all(const strategies::ProcessGroupUse& use) const {
    return use == strategies::ProcessGroupUse{{all_.size(), 1}};
  }
  Communicator& all_;
  std::unique_ptr<Communicator> alone_;  // for all process groups of one rank
  std::vector<std::pair<strategies::ProcessGroupUse, std::unique_ptr<Communicator>>> process_groups_;
};

class BoundProgram {
 public:
  // `reduction` has the kernels of ddp's reduction, or is nullptr. All arguments must outlive this.
  BoundProgram(strategies::Program program, ProgramMemory& memory, const ProcessGroups& process_groups,
               ReductionKernels* reduction);

  const strategies::Program& program() const { return program_; }
  // Executes instruction i, which starts calls or waits for them.
  void communicate(size_t i);
  bool is_inside_block(size_t i) const {
    return program_.calls[static_cast<size_t>(program_.instructions[i].index)].inside_block.has_value();
  }
  // The calls inside the block that instruction i computes. The block starts one after the other, on its own
  // tensors, and waits for them in the same order. end_block() makes those that the block did not make
  // because it failed, and waits for those that it did not wait for.
  void begin_block(size_t i) {
    first_inside_ = next_inside_ = i + 1;
    stand_in_rows_.reset();
    block_ = {program_.instructions[i].index, program_.instructions[i].micro_batch};
  }
  // Returns the number of the call, for wait_inside_block().
  size_t start_inside_block(specs::Dimension dimension, Collective what, const at::Tensor& out,
                            const at::Tensor& in);
  void wait_inside_block(size_t call);
  // Gathers how many rows each rank sends to each receiver, [rank][receiver], which are ranks or their
  // experts. If a rank has failed, nobody sends any.
  std::vector<int64_t> gather_counts(const at::Tensor& all, const at::Tensor& own);
  void end_block();
  // Executes instruction i, which is local work.
  void run_locally(size_t i);
  void poll();      // makes progress on what is in flight
  void wait_all();  // for all that is in flight, even beyond the end of a step

 private:
  struct BoundCall {
    Communicator* comm;
    // Prepared once, so that a step looks nothing up and allocates nothing. The tensors of rows that go to
    // experts have other sizes each time, so that `call` has none.
    Call call;
    Work work;
  };
  struct BoundInstruction {
    at::Tensor to, from;
  };
  BoundCall bound(const strategies::CollectiveCall& call, const ProcessGroups& process_groups) const;
  int64_t dimension_of(const BoundCall& call) const;
  BoundCall* next_inside_block();  // nullptr if the block has no further call
  const specs::BlockCall& planned(const BoundCall& call) const;
  std::vector<int64_t> gathered_counts(const BoundCall& counts, const at::Tensor& all);
  std::shared_ptr<const specs::Parts> parts_of(const BoundCall& rows) const;
  Call with_stand_in(const BoundCall& rows, std::shared_ptr<const specs::Parts> parts);

  strategies::Program program_;
  ProgramMemory& memory_;
  ReductionKernels* reduction_;
  std::vector<BoundCall> calls_;                // parallel to the program's calls
  std::vector<BoundInstruction> instructions_;  // parallel to the program's instructions
  std::vector<at::Tensor> gradients_;           // those that this rank counts in the norm
  std::vector<Communicator*> communicators_;    // each once
  // The instructions that start the block's first and next call, if it has one.
  size_t first_inside_ = 0, next_inside_ = 0;
  // [block, micro-batch, communicator]: the rows that each of its ranks sends to each, in the latest forward.
  // Backward sends their gradients the same ways, even on a rank that has failed in between.
  using Exchange = std::tuple<int64_t, int64_t, const Communicator*>;
  std::map<Exchange, specs::Parts::Rows> rows_sent_;
  Exchange exchange_of(const BoundCall& call) const { return {block_.first, block_.second, call.comm}; }
  std::pair<int64_t, int64_t> block_ = {};  // that computes, and its micro-batch
  at::Tensor stand_in_rows_;  // bytes that rows are sent from and received in if no block computes
};

// Replaces a call of a block when ranks compute alone (Ablation::compute_only): fills `out` with values of
// the right sizes that blocks can compute with, which are those of `in`.
void stand_in(Collective what, const at::Tensor& out, const at::Tensor& in);

}  // namespace shardmark
