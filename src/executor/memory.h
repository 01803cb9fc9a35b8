// The memory of a program: its buffers as tensors, and a model whose parameters and gradients are views of
// them.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "executor/precision.h"
#include "models/model.h"
#include "strategies/program.h"

namespace shardmark {

// A group that has no fixed location. Note [Rebinding]: its tensors share one StorageImpl, whose data pointer
// is set to another slot. Views, gradients and the tensors that autograd has saved follow it, and no version
// counter changes. Forward and backward may therefore use different slots, as long as the pointer is right
// whenever a kernel is launched.
class ReboundGroup {
 public:
  ReboundGroup(int64_t numel, at::ScalarType dtype, at::Device device);
  void bind(const at::Tensor& slot);  // slot: [numel] or longer; must stay valid while in use
  const at::Tensor& whole() const { return whole_; }

 private:
  at::Tensor whole_;
};

class ProgramMemory {
 public:
  // Allocates the buffers and binds the model to them. Collective. The model must outlive this.
  ProgramMemory(const strategies::Program& program, Model& model, Communicator& comm, const Precision& types);

  at::Tensor at(const strategies::Slice& slice) const;  // [slice.numel], 1-D; undefined if there is no buffer
  // The stand-in memory (out, in) for a call that a block should make but does not.
  std::pair<at::Tensor, at::Tensor> inside_block(const specs::BlockCall& call,
                                                 const Communicator& process_group) const;
  const Precision& types() const { return types_; }
  at::ScalarType type(strategies::Element element) const;
  const at::Tensor& buffer(size_t index) const { return buffers_[index]; }
  ReboundGroup& parameters_of(int64_t group) { return *parameters_[static_cast<size_t>(group)]; }
  ReboundGroup& gradients_of(int64_t group) { return *gradients_[static_cast<size_t>(group)]; }

 private:
  std::vector<at::Tensor> buffers_;
  Precision types_;
  at::Tensor squares_;       // strategies::kSquares
  at::Tensor inside_block_;  // as bytes
  // [group]; set for groups that have no fixed location.
  std::vector<std::optional<ReboundGroup>> parameters_, gradients_;
};

// Writes the initial values of the shards that this rank owns.
void fill_initial(const strategies::Program& program, const Model& model, const ProgramMemory& memory,
                  int64_t rank, int64_t seed);

// The sum of squares of all elements, as a double scalar on `device`; 0 if a rank owns nothing.
at::Tensor squares(const std::vector<at::Tensor>& tensors, at::Device device);

}  // namespace shardmark
