// Gather and reduction of one group.
#include "strategies/moves.h"

namespace shardmark {
namespace {

// One operation per rank that owns some of the group, in one launch.
template <class Start>
Works for_each_owner(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole,
                     Start&& start) {
  Works works;
  comm.group_begin();
  for (size_t owner = 0; owner < layout.owned.size(); ++owner) {
    const laws::Range range = layout.owned[owner];
    if (range.numel > 0)
      works.push_back(start(whole.narrow(0, range.begin, range.numel), static_cast<int>(owner)));
  }
  comm.group_end();
  return works;
}

}  // namespace

at::Tensor owned_part(const Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole) {
  const laws::Range range = layout.owned[static_cast<size_t>(comm.rank())];
  return whole.narrow(0, range.begin, range.numel);
}

Works start_gather(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole,
                   const at::Tensor& own) {
  const at::Tensor part = owned_part(comm, layout, whole);
  const bool as_is = layout.even && own.scalar_type() == whole.scalar_type();
  if (!as_is && part.data_ptr() != own.data_ptr()) part.copy_(own);
  if (layout.even) {
    Works works;
    works.push_back(comm.all_gather(whole, as_is ? own : part));
    return works;
  }
  return for_each_owner(comm, layout, whole,
                        [&](const at::Tensor& range, int owner) { return comm.broadcast(range, owner); });
}

Works start_reduce(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole) {
  Works works;
  if (layout.even) {
    works.push_back(comm.reduce_scatter(owned_part(comm, layout, whole), whole, ReduceOp::sum));
    return works;
  }
  return for_each_owner(comm, layout, whole, [&](const at::Tensor& range, int owner) {
    return comm.reduce(range, owner, ReduceOp::sum);
  });
}

void wait_all(Works& works) {
  for (auto& work : works) work.wait();
  works.clear();
}

}  // namespace shardmark
