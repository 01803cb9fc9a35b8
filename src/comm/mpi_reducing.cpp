// all_reduce, reduce_scatter and reduce as jobs of the engine.
#include <cstring>

#include "comm/mpi_jobs.h"
#include "comm/mpi_pieces.h"
#include "comm/mpi_reduce.h"
#include "comm/mpi_tree.h"

namespace shardmark {
namespace {

// What a rank brings together from all ranks: contributions lie in scratch, one after the other, but for its
// own.
struct Gathering {
  HostGroup const& group;
  at::ScalarType dtype;
  ReduceOp op;

  // mine(rank): the bytes that I contribute to what `rank` reduces; out_bytes: of what I reduce.
  template <class Mine>
  void exchange(Chunk& chunk, int64_t out_bytes, Mine&& mine) const {
    char* scratch = chunk.scratch(out_bytes * group.size());
    for (int step = 1; step < group.size(); ++step) {
      const int from = receives_from(group, step);
      chunk.receive(scratch + out_bytes * from, out_bytes, from);
    }
    for (int step = 1; step < group.size(); ++step) {
      const int to = sends_to(group, step);
      const auto [data, bytes] = mine(to);
      chunk.send(data, bytes, to);
    }
  }

  void reduce(Chunk& chunk, void* out, const void* mine, int64_t bytes) const {
    char* scratch = chunk.scratch(0);
    std::vector<const void*> sources;
    for (int rank = 0; rank < group.size(); ++rank) {
      sources.push_back(rank == group.rank() ? mine : scratch + bytes * rank);
    }
    reduce_sources(out, sources, bytes / static_cast<int64_t>(at::elementSize(dtype)), dtype, op,
                   group.size());
  }
};

struct Bytes {
  const char* data;
  int64_t bytes;
};

// Short messages: everyone receives everything and reduces it, in one round.
Job all_reduce_in_one_round(const Gathering& gathering, const at::Tensor& tensor) {
  const auto bytes = static_cast<int64_t>(tensor.nbytes());
  char* data = bytes_at(tensor, 0);
  return {1,
          [=](Chunk& chunk) {
            if (chunk.round == 0) {
              gathering.exchange(chunk, bytes, [&](int) { return Bytes{data, bytes}; });
              return true;
            }
            gathering.reduce(chunk, data, data, bytes);
            return false;
          },
          {tensor}};
}

// Short messages among many ranks: up the tree to `root`, and down again where `all` ranks want the result.
Job reduce_along_tree(const Gathering& gathering, const at::Tensor& tensor, int root, bool all) {
  const HostGroup& group = gathering.group;
  const Tree tree(group.rank(), group.size(), root);
  const auto bytes = static_cast<int64_t>(tensor.nbytes());
  const ReduceOp pairwise = gathering.op == ReduceOp::average ? ReduceOp::sum : gathering.op;
  return {1,
          [=, &group](Chunk& chunk) {
            const int depth = tree.depth();
            const int round = chunk.round;
            char* data = bytes_at(tensor, 0);
            char* sum = chunk.scratch(2 * bytes);  // of my subtree; behind it what a child brings
            if (round == 0) std::memcpy(sum, data, bytes);
            if (round > 0 && round <= depth && tree.child(round - 1) >= 0) {
              reduce_sources(sum, {sum, sum + bytes}, tensor.numel(), gathering.dtype, pairwise, 1);
            }
            if (round == depth && group.rank() == root) {
              reduce_sources(data, {sum}, tensor.numel(), gathering.dtype, gathering.op, group.size());
            }
            if (round < depth) {
              if (tree.child(round) >= 0) chunk.receive(sum + bytes, bytes, tree.child(round));
              if (tree.parent(round) >= 0) chunk.send(sum, bytes, tree.parent(round));
              return true;
            }
            if (!all || round == 2 * depth) return false;
            const int level = 2 * depth - 1 - round;
            if (tree.parent(level) >= 0) chunk.receive(data, bytes, tree.parent(level));
            if (tree.child(level) >= 0) chunk.send(data, bytes, tree.child(level));
            return true;
          },
          {tensor}};
}

}  // namespace

Job all_reduce_job(const HostGroup& group, const at::Tensor& tensor, ReduceOp op) {
  const Gathering gathering{group, tensor.scalar_type(), op};
  const auto bytes = static_cast<int64_t>(tensor.nbytes());
  if (bytes > 0 && is_short(bytes, group.size())) {
    return group.size() <= kFewRanks ? all_reduce_in_one_round(gathering, tensor)
                                     : reduce_along_tree(gathering, tensor, 0, true);
  }
  const SharedCut cut(bytes, group.size());
  return {cut.num_chunks(),
          [=, &group](Chunk& chunk) {
            const Piece mine = cut.piece(chunk.index, group.rank());
            char* own = bytes_at(tensor, mine.begin);
            if (chunk.round == 0) {
              gathering.exchange(chunk, mine.bytes, [&](int rank) {
                const Piece piece = cut.piece(chunk.index, rank);
                return Bytes{bytes_at(tensor, piece.begin), piece.bytes};
              });
              return true;
            }
            if (chunk.round > 1) return false;
            gathering.reduce(chunk, own, own, mine.bytes);
            for (int step = 1; step < group.size(); ++step) {
              const int from = receives_from(group, step);
              const Piece piece = cut.piece(chunk.index, from);
              chunk.receive(bytes_at(tensor, piece.begin), piece.bytes, from);
            }
            for (int step = 1; step < group.size(); ++step)
              chunk.send(own, mine.bytes, sends_to(group, step));
            return true;
          },
          {tensor}};
}

Job reduce_scatter_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  const Gathering gathering{group, in.scalar_type(), op};
  const auto shard = static_cast<int64_t>(out.nbytes());
  const ShardCut cut(shard, group.size());
  return {cut.num_chunks(),
          [=, &group](Chunk& chunk) {
            const Piece span = cut.span(chunk.index);
            if (chunk.round == 0) {
              gathering.exchange(chunk, span.bytes, [&](int rank) {
                return Bytes{bytes_at(in, shard * rank + span.begin), span.bytes};
              });
              return true;
            }
            gathering.reduce(chunk, bytes_at(out, span.begin),
                             bytes_at(in, shard * group.rank() + span.begin), span.bytes);
            return false;
          },
          {out, in}};
}

Job reduce_job(const HostGroup& group, const at::Tensor& tensor, int root, ReduceOp op) {
  const Gathering gathering{group, tensor.scalar_type(), op};
  const auto bytes = static_cast<int64_t>(tensor.nbytes());
  if (bytes > 0 && is_short(bytes, group.size())) return reduce_along_tree(gathering, tensor, root, false);
  const SharedCut cut(bytes, group.size());
  const bool is_root = group.rank() == root;
  return {cut.num_chunks(),
          [=, &group](Chunk& chunk) {
            const Piece mine = cut.piece(chunk.index, group.rank());
            char* own = bytes_at(tensor, mine.begin);
            if (chunk.round == 0) {
              gathering.exchange(chunk, mine.bytes, [&](int rank) {
                const Piece piece = cut.piece(chunk.index, rank);
                return Bytes{bytes_at(tensor, piece.begin), piece.bytes};
              });
              return true;
            }
            if (chunk.round > 1) return false;
            // A rank that is not the root leaves its tensor alone: its own slot of the scratch takes the
            // result.
            char* result = is_root ? own : chunk.scratch(0) + mine.bytes * group.rank();
            gathering.reduce(chunk, result, own, mine.bytes);
            if (!is_root) chunk.send(result, mine.bytes, root);
            for (int step = 1; is_root && step < group.size(); ++step) {
              const int from = receives_from(group, step);
              const Piece piece = cut.piece(chunk.index, from);
              chunk.receive(bytes_at(tensor, piece.begin), piece.bytes, from);
            }
            return true;
          },
          {tensor}};
}

}  // namespace shardmark
