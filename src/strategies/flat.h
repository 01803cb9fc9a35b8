// Flat memory of groups: all parameters of a group are views into one stretch of memory, and so are their
// gradients, so that communication, optimizer and zeroing each are one operation on one tensor.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "device/meter.h"
#include "laws/layout.h"
#include "strategies/strategy.h"

namespace shardmark {

// Memory of every group behind each other in backward order, so that gradients which are ready together lie
// together.
struct FlatModel {
  at::Tensor buffer;               // [total_numel]
  std::vector<at::Tensor> groups;  // [group]: [layout.numel], views of the buffer
};
FlatModel allocate_flat(Model& model, Communicator& comm, const std::vector<laws::GroupLayout>& layout,
                        MemoryUse use, at::ScalarType dtype);
// The groups of a buffer [total_numel] that is laid out so: parameters, gradients, moments.
std::vector<at::Tensor> flat_groups(const Model& model, const std::vector<laws::GroupLayout>& layout,
                                    const at::Tensor& buffer);

// What a rank owns: [group][piece], 1-D, empty where the piece is another rank's.
using Parts = std::vector<std::vector<at::Tensor>>;
Parts allocate_owned(Communicator& comm, const std::vector<laws::GroupLayout>& layout, MemoryUse use,
                     at::ScalarType dtype);
Parts one_piece_each(const std::vector<at::Tensor>& groups);
std::vector<at::Tensor> concatenated(const Parts& parts);  // without the empty ones

// Makes the model's parameters of a group leaves that view `whole` ([layout.numel]).
void bind_parameters(Model& model, size_t group, const laws::GroupLayout& layout, const at::Tensor& whole);
// The same for their gradients; parameters must be bound before. Backward then adds into `whole`.
void bind_gradients(Model& model, size_t group, const laws::GroupLayout& layout, const at::Tensor& whole);

// Writes the initial values of the part `range` of a group into `part` ([range.numel]).
void fill_initial(const Model& model, size_t group, const laws::GroupLayout& layout, laws::Range range,
                  int64_t seed, const at::Tensor& part);
// The same for what this rank owns of a group.
void fill_initial(const Model& model, size_t group, const laws::GroupLayout& layout, int64_t rank,
                  int64_t seed, const std::vector<at::Tensor>& parts);

// Sum of squares of all elements, a double scalar on `device`: 0 where a rank owns nothing.
at::Tensor squares(const std::vector<at::Tensor>& tensors, at::Device device);

// A group without a fixed place. Note [Re-aiming]: its tensors share one StorageImpl whose pointer is set to
// another slot; views, gradients and what autograd saved follow it, and no version counter moves. So forward
// and backward may use different slots, as long as the pointer is right whenever a kernel is launched.
class AimedGroup {
 public:
  AimedGroup(int64_t numel, at::ScalarType dtype, at::Device device);
  void aim(const at::Tensor& slot);  // slot: at least [numel]; it must outlive its use here
  const at::Tensor& whole() const { return whole_; }

 private:
  at::Tensor whole_;
};

}  // namespace shardmark
