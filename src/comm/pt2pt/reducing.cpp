// all_reduce, reduce_scatter and reduce as jobs of the engine. For long messages every rank reduces one piece
// of each chunk: it receives the contributions of all other ranks to that piece directly and adds them in
// rank order. That moves the same number of bytes as a ring, for any number of ranks, but every element is
// summed in one place while the data is in cache, and in an order that does not depend on the rank.
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/pt2pt/jobs.h"
#include "comm/pt2pt/pieces.h"

namespace shardmark {
namespace {

// Compiles a function twice; the loader takes the form that the processor has. Results are the same bits.
#ifdef __x86_64__
#define SHARDMARK_AVX2_IF_THERE __attribute__((target_clones("avx2", "default")))
#else
#define SHARDMARK_AVX2_IF_THERE
#endif

// The reduction kernels work in blocks of a fixed length, which lets the compiler vectorise every loop and
// keeps the accumulators in the L1 cache.
constexpr int64_t kBlock = 1024;

template <class T>
struct Accumulator {
  using Type = T;
};
template <>
struct Accumulator<at::Half> {
  using Type = float;
};
template <>
struct Accumulator<at::BFloat16> {
  using Type = float;
};

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    // Integers wrap around. Repeated sums in place may overflow, and that must stay defined.
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};

// The contributions to a reduction, in rank order.
using Sources = c10::ArrayRef<const void*>;

// Length is an integral constant for whole blocks and a number for the rest.
template <class T, class Op, class Length>
SHARDMARK_AVX2_IF_THERE void reduce_block(T* out, Sources sources, int64_t begin, Length length,
                                          int divisor) {
  using A = typename Accumulator<T>::Type;
  A sum[kBlock];
  const auto from = [&](size_t source) { return static_cast<const T*>(sources[source]) + begin; };
  const T* __restrict first = from(0);
  const T* __restrict second = from(sources.size() > 1 ? 1 : 0);
  // The first two sources are combined in one loop, which saves writing the first one to the accumulators
  // and reading it again.
  if (sources.size() > 1) {
    for (int64_t i = 0; i < length; ++i)
      sum[i] = Op::apply(static_cast<A>(first[i]), static_cast<A>(second[i]));
  } else {
    for (int64_t i = 0; i < length; ++i) sum[i] = static_cast<A>(first[i]);
  }
  for (size_t s = 2; s < sources.size(); ++s) {
    const T* __restrict source = from(s);
    for (int64_t i = 0; i < length; ++i) sum[i] = Op::apply(sum[i], static_cast<A>(source[i]));
  }
  if (divisor > 1) {
    for (int64_t i = 0; i < length; ++i) sum[i] = sum[i] / static_cast<A>(divisor);
  }
  T* __restrict result = out + begin;
  for (int64_t i = 0; i < length; ++i) result[i] = static_cast<T>(sum[i]);
}

template <class T, class Op>
void reduce_typed(void* out, Sources sources, int64_t numel, int divisor) {
  const int64_t whole = numel / kBlock * kBlock;
  const auto full = std::integral_constant<int64_t, kBlock>{};
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    reduce_block<T, Op>(static_cast<T*>(out), sources, begin, full, divisor);
  }
  reduce_block<T, Op>(static_cast<T*>(out), sources, whole, numel - whole, divisor);
}

template <class T>
void reduce_op(void* out, Sources sources, int64_t numel, ReduceOp op, int num_averaged) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_typed<T, Sum>(out, sources, numel, 1);
    case ReduceOp::average:
      return reduce_typed<T, Sum>(out, sources, numel, num_averaged);
    case ReduceOp::min:
      return reduce_typed<T, Min>(out, sources, numel, 1);
    case ReduceOp::max:
      return reduce_typed<T, Max>(out, sources, numel, 1);
  }
}

// Reduces contributions that lie in this rank's memory: out[i] = sources[0][i] op sources[1][i] op ... For an
// average the sum is divided by `num_averaged`. `out` may be one of the sources. They are added in rank
// order, and 16-bit types are accumulated in float. So a result depends neither on which rank computed it nor
// on how a tensor was divided.
void reduce_sources(void* out, Sources sources, int64_t numel, at::ScalarType dtype, ReduceOp op,
                    int num_averaged) {
  switch (dtype) {
    case at::kFloat:
      return reduce_op<float>(out, sources, numel, op, num_averaged);
    case at::kDouble:
      return reduce_op<double>(out, sources, numel, op, num_averaged);
    case at::kHalf:
      return reduce_op<at::Half>(out, sources, numel, op, num_averaged);
    case at::kBFloat16:
      return reduce_op<at::BFloat16>(out, sources, numel, op, num_averaged);
    case at::kInt:
      return reduce_op<int32_t>(out, sources, numel, op, num_averaged);
    case at::kLong:
      return reduce_op<int64_t>(out, sources, numel, op, num_averaged);
    default:
      ENSURE(false, std::string("no reduction of ") + at::toString(dtype));
  }
}

struct Bytes {
  const char* data;
  int64_t bytes;
};

// Gathers what all ranks contribute to the piece that this rank reduces, and reduces it.
struct Reduction {
  const HostGroup& group;
  at::ScalarType dtype;
  ReduceOp op;

  // Receives the contributions of the other ranks into scratch memory, in rank order. piece_for(rank) is this
  // rank's contribution to the piece that `rank` reduces.
  template <class PieceFor>
  void exchange(Chunk& chunk, int64_t bytes, PieceFor&& piece_for) const {
    char* scratch = chunk.scratch(bytes * (group.size() - 1));
    for (int step = 1; step < group.size(); ++step) {
      const int from = receives_from(group, step);
      chunk.receive(scratch + bytes * slot_of(from), bytes, from);
    }
    for (int step = 1; step < group.size(); ++step) {
      const int to = sends_to(group, step);
      const Bytes piece = piece_for(to);
      chunk.send(piece.data, piece.bytes, to);
    }
  }

  int slot_of(int rank) const { return rank < group.rank() ? rank : rank - 1; }

  // `out` may be `mine` or the first of the contributions.
  void reduce(Chunk& chunk, void* out, const void* mine, int64_t bytes) const {
    const char* scratch = chunk.scratch(0);
    c10::SmallVector<const void*, kFewRanks> sources;
    for (int rank = 0; rank < group.size(); ++rank) {
      sources.push_back(rank == group.rank() ? mine : scratch + bytes * slot_of(rank));
    }
    reduce_sources(out, sources, bytes / static_cast<int64_t>(at::elementSize(dtype)), dtype, op,
                   group.size());
  }
};

// For short messages and few ranks: every rank receives all contributions and reduces them itself, in one
// round (all_reduces_in_one_round()).
Job all_reduce_in_one_round(const Reduction& reduction, const at::Tensor& out, const at::Tensor& in) {
  return {1, [=](Chunk& chunk) {
            const Bytes all{bytes_at(in, 0), static_cast<int64_t>(in.nbytes())};
            if (chunk.round == 0) {
              reduction.exchange(chunk, all.bytes, [&](int) { return all; });
              return true;
            }
            reduction.reduce(chunk, out.data_ptr(), all.data, all.bytes);
            return false;
          }};
}

// For short messages and many ranks: reduces up a binomial tree to `root`; if `all` ranks want the result,
// it goes down the tree again. In round k a rank first adds what its child of round k - 1 has brought, and
// then receives from its child of round k or sends its sum to its parent. An average is a sum until the
// root divides it.
Job reduce_along_tree(const Reduction& reduction, const at::Tensor& out, const at::Tensor& in, int root,
                      bool all) {
  const int rank = reduction.group.rank();
  const int size = reduction.group.size();
  const Tree tree(rank, size, root);
  const auto bytes = static_cast<int64_t>(in.nbytes());
  const ReduceOp pairwise = reduction.op == ReduceOp::average ? ReduceOp::sum : reduction.op;
  const auto up = [=](Chunk& chunk) {
    char* sum = chunk.scratch(2 * bytes);  // first my subtree's sum, then what a child brings
    char* brought = sum + bytes;
    const int round = chunk.round;
    if (round == 0) std::memcpy(sum, in.data_ptr(), static_cast<size_t>(bytes));
    if (round > 0 && tree.child(round - 1) >= 0) {
      reduce_sources(sum, {sum, brought}, in.numel(), reduction.dtype, pairwise, 1);
    }
    if (round == tree.depth()) {
      if (rank == root)
        reduce_sources(out.data_ptr(), {sum}, in.numel(), reduction.dtype, reduction.op, size);
      return;
    }
    if (tree.child(round) >= 0) chunk.receive(brought, bytes, tree.child(round));
    if (tree.parent(round) >= 0) chunk.send(sum, bytes, tree.parent(round));
  };
  return {1, [=](Chunk& chunk) {
            if (chunk.round <= tree.depth()) up(chunk);
            if (chunk.round < tree.depth()) return true;
            const int level = 2 * tree.depth() - 1 - chunk.round;
            if (!all || level < 0) return false;
            if (tree.parent(level) >= 0) chunk.receive(out.data_ptr(), bytes, tree.parent(level));
            if (tree.child(level) >= 0) chunk.send(out.data_ptr(), bytes, tree.child(level));
            return true;
          }};
}

// The two sides of reduce for long messages, one chunk at a time. reduce_job() below describes the rounds.
struct RootedReduction {
  Reduction reduction;
  SharedCut cut;
  int root;

  ReduceOp pairwise() const { return reduction.op == ReduceOp::average ? ReduceOp::sum : reduction.op; }
  void combine(void* result, Sources sources, int64_t bytes, ReduceOp op) const {
    const auto numel = bytes / static_cast<int64_t>(at::elementSize(reduction.dtype));
    reduce_sources(result, sources, numel, reduction.dtype, op, reduction.group.size());
  }

  // On a rank other than the root. Round 0 exchanges contributions, round 1 sends the reduced piece to the
  // root. The rank's contribution to the root's own piece goes to the root unreduced in round 0.
  bool elsewhere(Chunk& chunk, const at::Tensor& in) const {
    const HostGroup& group = reduction.group;
    const Piece mine = cut.piece(chunk.index, group.rank());
    char* scratch = chunk.scratch(mine.bytes * (group.size() - 1));
    const auto brought = [&](int rank) { return scratch + mine.bytes * reduction.slot_of(rank); };
    if (chunk.round > 1) return false;
    if (chunk.round == 1) {
      std::vector<const void*> sources;
      for (int rank = 0; rank < group.size(); ++rank)
        if (rank != root) sources.push_back(rank == group.rank() ? bytes_at(in, mine.begin) : brought(rank));
      if (sources.size() > 1) combine(scratch, sources, mine.bytes, pairwise());
      chunk.send(sources.size() > 1 ? scratch : sources.front(), mine.bytes, root);
      return true;
    }
    for (int step = 1; step < group.size(); ++step) {
      const int from = receives_from(group, step);
      if (from != root) chunk.receive(brought(from), mine.bytes, from);
    }
    for (int step = 1; step < group.size(); ++step) {
      const Piece piece = cut.piece(chunk.index, sends_to(group, step));
      chunk.send(bytes_at(in, piece.begin), piece.bytes, sends_to(group, step));
    }
    return true;
  }

  // On the root. Round 0 receives the others' contributions to the root's own piece; round 1 reduces them and
  // receives the other pieces, which lack only the root's contribution; round 2 adds it.
  bool at_root(Chunk& chunk, const at::Tensor& out, const at::Tensor& in) const {
    const HostGroup& group = reduction.group;
    const int64_t longest = cut.piece(chunk.index, 0).bytes;
    char* scratch = chunk.scratch(longest * (group.size() - 1));
    const auto brought = [&](int rank) { return scratch + longest * reduction.slot_of(rank); };
    const auto add_mine = [&](std::vector<const void*> sources, const Piece& piece) {
      sources.push_back(bytes_at(in, piece.begin));
      combine(bytes_at(out, piece.begin), sources, piece.bytes, reduction.op);
    };
    const auto piece_of = [&](int rank) { return cut.piece(chunk.index, rank); };
    std::vector<const void*> contributions;
    for (int rank = 0; rank < group.size(); ++rank)
      if (rank != root) contributions.push_back(brought(rank));
    if (chunk.round == 1) add_mine(contributions, piece_of(root));
    if (chunk.round == 2)
      for (int rank = 0; rank < group.size(); ++rank)
        if (rank != root) add_mine({brought(rank)}, piece_of(rank));
    if (chunk.round == 2) return false;
    for (int step = 1; step < group.size(); ++step) {
      const int from = receives_from(group, step);
      chunk.receive(brought(from), piece_of(chunk.round == 0 ? root : from).bytes, from);
    }
    return true;
  }
};

// For long messages, as two passes: all pieces of the tensor are reduced before the first result is sent. A
// rank receives results into the memory from which its peers have just read its contribution. Between cores
// without a common cache that write is three times slower while the lines are still in the peer's cache. A
// pass over the whole tensor gives them time to leave it.
struct AllReduceInTwoPasses {
  Reduction reduction;
  SharedCut cut;
  at::Tensor out, in;

  bool operator()(Chunk& chunk) const {
    return chunk.index < cut.num_chunks() ? reduce_piece(chunk) : hand_out(chunk);
  }

  bool reduce_piece(Chunk& chunk) const {
    const Piece mine = cut.piece(chunk.index, reduction.group.rank());
    if (chunk.round == 0) {
      reduction.exchange(chunk, mine.bytes, [&](int rank) {
        const Piece piece = cut.piece(chunk.index, rank);
        return Bytes{bytes_at(in, piece.begin), piece.bytes};
      });
      return true;
    }
    reduction.reduce(chunk, bytes_at(out, mine.begin), bytes_at(in, mine.begin), mine.bytes);
    return false;
  }

  // The second pass over the chunks. The job's lag lets chunk i start here only when chunk i of the first
  // pass is done on this rank. Then this rank's piece is reduced, and its own contributions have been sent:
  // in place, the results of the other ranks overwrite them.
  bool hand_out(Chunk& chunk) const {
    if (chunk.round > 0) return false;
    const HostGroup& group = reduction.group;
    const auto piece_of = [&](int rank) { return cut.piece(chunk.index - cut.num_chunks(), rank); };
    for (int step = 1; step < group.size(); ++step) {
      const int from = receives_from(group, step);
      chunk.receive(bytes_at(out, piece_of(from).begin), piece_of(from).bytes, from);
    }
    const Piece mine = piece_of(group.rank());
    for (int step = 1; step < group.size(); ++step) {
      chunk.send(bytes_at(out, mine.begin), mine.bytes, sends_to(group, step));
    }
    return true;
  }
};

}  // namespace

Job all_reduce_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  const Reduction reduction{group, in.scalar_type(), op};
  const auto bytes = static_cast<int64_t>(in.nbytes());
  if (bytes > 0 && all_reduces_in_one_round(bytes, group.size()))
    return all_reduce_in_one_round(reduction, out, in);
  if (bytes > 0 && group.size() > kFewRanks && is_short(bytes, group.size()))
    return reduce_along_tree(reduction, out, in, 0, true);
  const AllReduceInTwoPasses passes{reduction, SharedCut(bytes, group.size()), out, in};
  const int64_t num_chunks = passes.cut.num_chunks();
  return {2 * num_chunks, passes, num_chunks};
}

Job reduce_scatter_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  const Reduction reduction{group, in.scalar_type(), op};
  const auto shard = static_cast<int64_t>(out.nbytes());
  const ShardCut cut(shard, group.size());
  return {cut.num_chunks(), [=, &group](Chunk& chunk) {
            const Piece span = cut.span(chunk.index);
            const auto mine = [&](int rank) { return bytes_at(in, shard * rank + span.begin); };
            if (chunk.round == 0) {
              reduction.exchange(chunk, span.bytes, [&](int rank) { return Bytes{mine(rank), span.bytes}; });
              return true;
            }
            reduction.reduce(chunk, bytes_at(out, span.begin), mine(group.rank()), span.bytes);
            return false;
          }};
}

// For long messages every rank but the root reduces one piece of what these ranks contribute, and sends it to
// the root, which adds its own contribution last. The root sends nothing. Together all ranks move (n-1) M
// bytes.
Job reduce_job(const HostGroup& group, const at::Tensor& out, const at::Tensor& in, int root, ReduceOp op) {
  const auto bytes = static_cast<int64_t>(in.nbytes());
  if (bytes > 0 && is_short(bytes, group.size()))
    return reduce_along_tree({group, in.scalar_type(), op}, out, in, root, false);
  const RootedReduction reduction{{group, in.scalar_type(), op}, SharedCut(bytes, group.size()), root};
  return {reduction.cut.num_chunks(), [=, &group](Chunk& chunk) {
            return group.rank() == root ? reduction.at_root(chunk, out, in) : reduction.elsewhere(chunk, in);
          }};
}

}  // namespace shardmark
