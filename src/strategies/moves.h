// The two moves of sharded strategies: a group's parts to every rank, and its gradients to their owners, by
// one operation for each piece of the group (laws/layout.h): a collective over equal parts, or from or to the
// owner.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "laws/layout.h"

namespace shardmark {

using Works = std::vector<Work>;

// The parts of `whole` ([layout.numel]) that this rank owns: [piece], maybe empty.
std::vector<at::Tensor> owned_parts(const Communicator& comm, const laws::GroupLayout& layout,
                                    const at::Tensor& whole);

// Fills `whole` on every rank from the owners' parts; `own` may be owned_parts(whole) themselves, or of
// another type.
Works start_gather(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole,
                   const std::vector<at::Tensor>& own);

// Sums `whole` over ranks into each owner's parts of it.
Works start_reduce(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole);

void wait_all(Works& works);

}  // namespace shardmark
