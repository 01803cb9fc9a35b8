// A binomial tree over ranks, numbered from its root. Going up, round k joins subtrees of 2^k ranks; going
// down is the reverse.
#pragma once

#include <bit>

namespace shardmark {

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
