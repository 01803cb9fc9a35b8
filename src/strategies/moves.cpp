// Gather and reduction of one group.
#include "strategies/moves.h"

namespace shardmark {
namespace {

// One operation for each piece, in one launch. start(piece of whole, index, owner or Piece::kCut)
template <class Start>
Works for_each_piece(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole,
                     Start&& start) {
  Works works;
  OneLaunch launch(comm);
  for (size_t i = 0; i < layout.pieces.size(); ++i) {
    const auto& [range, owner] = layout.pieces[i];
    works.push_back(start(whole.narrow(0, range.begin, range.numel), i, static_cast<int>(owner)));
  }
  launch.end();
  return works;
}

}  // namespace

std::vector<at::Tensor> owned_parts(const Communicator& comm, const laws::GroupLayout& layout,
                                    const at::Tensor& whole) {
  std::vector<at::Tensor> parts;
  for (size_t piece = 0; piece < layout.pieces.size(); ++piece) {
    const laws::Range range = layout.owned(piece, comm.rank());
    parts.push_back(whole.narrow(0, range.begin, range.numel));
  }
  return parts;
}

Works start_gather(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole,
                   const std::vector<at::Tensor>& own) {
  std::vector<at::Tensor> parts = owned_parts(comm, layout, whole);
  for (size_t piece = 0; piece < parts.size(); ++piece) {
    if (own[piece].scalar_type() == whole.scalar_type())
      parts[piece] = own[piece];
    else
      parts[piece].copy_(own[piece]);
  }
  return for_each_piece(comm, layout, whole, [&](const at::Tensor& piece, size_t index, int owner) {
    if (owner == laws::Piece::kCut) return comm.all_gather(piece, parts[index]);
    return comm.broadcast(piece, parts[index], owner);
  });
}

Works start_reduce(Communicator& comm, const laws::GroupLayout& layout, const at::Tensor& whole) {
  const std::vector<at::Tensor> parts = owned_parts(comm, layout, whole);
  return for_each_piece(comm, layout, whole, [&](const at::Tensor& piece, size_t index, int owner) {
    if (owner == laws::Piece::kCut) return comm.reduce_scatter(parts[index], piece, ReduceOp::sum);
    return comm.reduce(piece, owner, ReduceOp::sum);
  });
}

void wait_all(Works& works) {
  for (auto& work : works) work.wait();
  works.clear();
}

}  // namespace shardmark
