// The two moves of sharded strategies: a group's parts to every rank, and its gradients to their owners. Even
// parts move by one collective; whole tensors by one broadcast or reduction per owner.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "laws/layout.h"

namespace shardmark {

using Works = std::vector<Work>;

// The part of `whole` ([layout.numel]) that this rank owns.
at::Tensor owned_part(const Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole);

// Fills `whole` on every rank from the owners' parts; `own` may be owned_part(whole) itself, or of another
// type.
Works start_gather(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole,
                   const at::Tensor& own);

// Sums `whole` over ranks into each owner's part of it.
Works start_reduce(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole);

void wait_all(Works& works);

}  // namespace shardmark
