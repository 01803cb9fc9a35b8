// The memory of a program: its buffers as tensors, and a model whose parameters and gradients view them.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "executor/precision.h"
#include "models/model.h"
#include "strategies/program.h"

namespace shardmark {

// A group without a fixed place. Note [Rebinding]: its tensors share one StorageImpl whose pointer is set to
// another slot; views, gradients and what autograd saved follow it, and no version counter moves. So forward
// and backward may use different slots, as long as the pointer is right whenever a kernel is launched.
class ReboundGroup {
 public:
  ReboundGroup(int64_t numel, at::ScalarType dtype, at::Device device);
  void bind(const at::Tensor& slot);  // slot: at least [numel]; it must outlive its use here
  const at::Tensor& whole() const { return whole_; }

 private:
  at::Tensor whole_;
};

class ProgramMemory {
 public:
  // Allocates the buffers and binds the model to them; collective. The model must outlive this.
  ProgramMemory(const strategies::Program& program, Model& model, Communicator& comm, const Precision& types);

  at::Tensor at(const strategies::Slice& slice) const;  // [slice.numel], 1-D; undefined for no buffer
  // What a block's call is made on where the block itself does not make it: out, in.
  std::pair<at::Tensor, at::Tensor> inside_block(const specs::BlockCall& call,
                                                 const Communicator& team) const;
  const Precision& types() const { return types_; }
  const at::Tensor& buffer(size_t index) const { return buffers_[index]; }
  ReboundGroup& parameters_of(int64_t group) { return *parameters_[static_cast<size_t>(group)]; }
  ReboundGroup& gradients_of(int64_t group) { return *gradients_[static_cast<size_t>(group)]; }

 private:
  std::vector<at::Tensor> buffers_;
  Precision types_;
  at::Tensor squares_;                                               // strategies::kSquares
  at::Tensor inside_block_;                                          // bytes
  std::vector<std::optional<ReboundGroup>> parameters_, gradients_;  // [group], where it has no fixed place
};

// Writes the initial values of what this rank owns of each group.
void fill_initial(const strategies::Program& program, const Model& model, const ProgramMemory& memory,
                  int64_t rank, int64_t seed);

// Sum of squares of all elements, a double scalar on `device`: 0 where a rank owns nothing.
at::Tensor squares(const std::vector<at::Tensor>& tensors, at::Device device);

}  // namespace shardmark
