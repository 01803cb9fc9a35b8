// How the pt2pt transport divides tensors: into chunks, and a chunk into one piece per rank. Also who sends
// to whom: the order in which ranks pair up, and the tree of short messages.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "comm/host_group.h"

namespace shardmark {

inline constexpr int64_t kCacheLine = 64;

struct Piece {
  int64_t begin;
  int64_t bytes;
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The bytes of one rank in a chunk. The minimum keeps many ranks from exchanging little more than headers.
inline int64_t piece_bytes(int64_t chunk_bytes, int num_ranks) {
  constexpr int64_t kLeastBytes = 16 << 10;
  return std::max(chunk_bytes / num_ranks / kCacheLine * kCacheLine, kLeastBytes);
}

// Divides bytes [0, total) that all ranks hold. A chunk is a contiguous range; it consists of one piece per
// rank, in rank order.
class SharedCut {
 public:
  SharedCut(int64_t total_bytes, int num_ranks)
      : total_(total_bytes), chunk_(piece_bytes(kChunkBytes, num_ranks) * num_ranks), num_ranks_(num_ranks) {}

  int64_t num_chunks() const { return ceil_div(total_, chunk_); }
  Piece chunk(int64_t index) const { return {index * chunk_, std::min(chunk_, total_ - index * chunk_)}; }
  // Pieces begin at whole cache lines. In a short chunk the last pieces may be empty.
  Piece piece(int64_t index, int rank) const {
    const Piece whole = chunk(index);
    const int64_t step = ceil_div(ceil_div(whole.bytes, num_ranks_), kCacheLine) * kCacheLine;
    const int64_t begin = std::min(step * rank, whole.bytes);
    return {whole.begin + begin, std::min(step, whole.bytes - begin)};
  }

 private:
  static constexpr int64_t kChunkBytes = 4 << 20;  // measured on 2 ranks: comm/README.md
  int64_t total_;
  int64_t chunk_;
  int num_ranks_;
};

// Divides the shards of all ranks, bytes [0, shard) of each. A chunk is the same range in every shard.
class ShardCut {
 public:
  ShardCut(int64_t shard_bytes, int num_ranks)
      : shard_(shard_bytes), span_(piece_bytes(kChunkBytes, num_ranks)) {}

  int64_t num_chunks() const { return ceil_div(shard_, span_); }
  Piece span(int64_t index) const { return {index * span_, std::min(span_, shard_ - index * span_)}; }

 private:
  static constexpr int64_t kChunkBytes = 2 << 20;  // longer ones slow fsdp down, which computes meanwhile
  int64_t shard_;
  int64_t span_;
};

inline char* bytes_at(const at::Tensor& tensor, int64_t offset) {
  return static_cast<char*>(tensor.data_ptr()) + offset;
}

// The pairing of ranks. In step s = 1 .. size-1 each rank sends to one partner and receives from another, so
// that no rank receives from many at once.
inline int sends_to(const HostGroup& group, int step) { return (group.rank() + step) % group.size(); }
inline int receives_from(const HostGroup& group, int step) {
  return (group.rank() - step + group.size()) % group.size();
}

// Open MPI sends up to some 4,000 B with its first message. A longer one asks first whether the receiver is
// there, which takes several times as long.
inline constexpr int64_t kEagerBytes = 4000;
inline constexpr int kFewRanks = 8;

// Whether few ranks all-reduce in one round, in which each sends its whole tensor to all others, and not in
// two, in which it sends pieces. This saves the time of a round. It moves more bytes among three ranks or
// more, so a rank may send no more than three of the first messages together. Two ranks move the same bytes
// either way. Their pieces are halves, which go with a first message up to twice its length. For longer
// tensors one round is faster, up to where it takes longer that both ranks add all numbers than a second
// round would. Measured: comm/README.md.
inline bool all_reduces_in_one_round(int64_t bytes, int num_ranks) {
  constexpr int64_t kMostBetweenTwo = 40 << 10;
  if (num_ranks > kFewRanks) return false;
  if (bytes <= kEagerBytes && (num_ranks - 1) * bytes <= 3 * kEagerBytes) return true;
  return num_ranks == 2 && bytes > 2 * kEagerBytes && bytes <= kMostBetweenTwo;
}

// The other collectives that can send a short message whole, and an all-reduce of many ranks, do so along a
// binomial tree.
inline bool is_short(int64_t bytes, int64_t num_ranks) {
  constexpr int64_t kShortBytes = 2048, kShortBytesPerRank = 512;
  return bytes <= (num_ranks <= kFewRanks ? kShortBytes : kShortBytesPerRank * num_ranks);
}

// A binomial tree over ranks, numbered from its root. Going up, round k joins subtrees of 2^k ranks; going
// down is the reverse.
class Tree {
 public:
  Tree(int rank, int size, int root) : number_((rank - root + size) % size), size_(size), root_(root) {}

  int depth() const { return std::bit_width(static_cast<unsigned>(size_ - 1)); }
  // In round k, parent() is the rank to which this one passes the result of its subtree, and child() is the
  // rank from which it gets one; -1 if there is none.
  int parent(int round) const {
    return number_ % (2 << round) == 1 << round ? rank_of(number_ - (1 << round)) : -1;
  }
  int child(int round) const {
    const bool joins = number_ % (2 << round) == 0 && number_ + (1 << round) < size_;
    return joins ? rank_of(number_ + (1 << round)) : -1;
  }

 private:
  int rank_of(int number) const { return (number + root_) % size_; }
  int number_;
  int size_;
  int root_;
};

}  // namespace shardmark
